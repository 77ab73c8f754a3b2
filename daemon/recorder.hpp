// From an event and what it changed to what the store keeps of it.
#pragma once

#include <vector>

#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "daemon/record.hpp"

namespace resourced::daemon {

/// The targets that an event is about: none for a definition.
[[nodiscard]] IdSet concerned_ranks(const EventBody& body);

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, const Event& event, const Outcome& outcome,
                                 const Module& module);

/// Makes a record replace the drain table by the module's. Used where a start found ranks or hosts to be
/// others.
void rewrite_drains(Record& record, const Module& module);

/// Whether a stored drain table says the same as the module's, rank by rank and host by host.
[[nodiscard]] bool same_drains(const std::vector<RecordedDrain>& recorded, const Module& module);

}  // namespace resourced::daemon
