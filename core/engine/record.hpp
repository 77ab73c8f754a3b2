// The record of one event in the log: the event, and what readers of the log look for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/module/module.hpp"
#include "core/module/state.hpp"
#include "core/text/hostlist.hpp"
#include "core/time.hpp"

namespace resourced::engine {

/// Numbers events from 1, over all starts on one log.
using Sequence = std::uint64_t;

struct Record {
  Sequence sequence = 0;
  module::Event event;
  /// concerned(), and the hosts of these targets.
  text::IdSet ranks;
  text::Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events.
  std::shared_ptr<const std::string> resources;
  /// Set for UpdateEvent::lost: the log of an instance writes nothing for the event, a store only that there
  /// was one, and the journal skips it. Only schedulers and the present state show it.
  bool hidden = false;
  /// A record of the ledger (module::is_of_ledger): a journal shows it only to consumers that ask for these.
  bool of_ledger = false;
  /// Of a free: the resources that are held no longer.
  std::vector<std::shared_ptr<const rset::ResourceSet>> released;
};

/// The targets that an event concerns. Empty for a definition.
[[nodiscard]] text::IdSet concerned(const module::EventBody& event);

/// The record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                                 const module::Module& module);

}  // namespace resourced::engine
