// From an event and what it changed to what the log keeps of it.
#pragma once

#include "core/engine/record.hpp"
#include "core/module/module.hpp"

namespace resourced::engine {

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, Event event, const Outcome& outcome,
                                 const Module& module);

/// Makes a record replace the drain table by the module's. Used where a start did not find all targets that
/// were drained.
void rewrite_drains(TableChanges& changes, const Module& module);

}  // namespace resourced::engine
