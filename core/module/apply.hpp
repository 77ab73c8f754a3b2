// Applies events (RFC 44) to an inventory and to the states of targets. There is no other code for this:
// Module::apply() (live and at a start, in apply.cpp too), the check of a command before it is applied, an
// import and the mirror of an enclosing instance all use these functions. An event in ranks of another
// instance is translated first.
#pragma once

#include <vector>

#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// The states of targets, as events tell them.
struct TargetStates {
  DrainTable drains;
  text::IdSet online;
  text::IdSet torpid;
};

/// The changes of an event in the table of drains: targets whose entry has changed, and targets that are no
/// longer drained.
struct DrainChanges {
  std::vector<DrainGroup> drained;
  text::IdSet undrained;
};

/// Applies an event to an inventory. Only definitions and updates change it.
void fold_inventory(const EventBody& event, rset::ResourceSet& inventory);
void fold_inventory(const DefineEvent& event, rset::ResourceSet& inventory);
void fold_inventory(const UpdateEvent& event, rset::ResourceSet& inventory);

/// Applies an event to states of targets. A restart drops the drains of targets that it does not name; a
/// target that leaves for good has no state any more, one whose broker is lost keeps it. A definition changes
/// nothing: where it renumbers targets, their owner moves the states.
DrainChanges fold_states(const Event& event, TargetStates& states);

}  // namespace resourced::module
