// Makes the record of an event, from the event and its outcome.
#pragma once

#include "core/engine/record.hpp"
#include "core/module/module.hpp"

namespace resourced::engine {

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                                 const module::Module& module);

/// Makes a record replace the table of drains by the drains of the module. Used after a start that did not
/// find all drained targets in its inventory.
void rewrite_drains(TableChanges& changes, const module::Module& module);

}  // namespace resourced::engine
