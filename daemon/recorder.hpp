// From an event and what it changed to what the store keeps of it.
#pragma once

#include "core/module/module.hpp"
#include "daemon/record.hpp"

namespace resourced::daemon {

/// The targets that an event is about: none for a definition.
[[nodiscard]] IdSet concerned_ranks(const EventBody& body);

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, const Event& event, const Outcome& outcome,
                                 const Module& module);

/// Makes a record replace the drain table by the module's. Used where a start did not find all targets that
/// were drained.
void rewrite_drains(Record& record, const Module& module);

}  // namespace resourced::daemon
