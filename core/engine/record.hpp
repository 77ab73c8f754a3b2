// The record of one event in the log: the event, and the data that readers of the log search for.
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
  /// The targets that the event concerns (concerned()), and their hosts.
  text::IdSet ranks;
  text::Hostlist hosts;
  /// The R of a resource-define, which RFC 44 has beside the event; null for other events.
  std::shared_ptr<const std::string> resources;
  /// The resources that are held no longer after a free.
  std::vector<std::shared_ptr<const rset::ResourceSet>> released;
};

/// Returns the targets that an event concerns. Empty for a definition.
[[nodiscard]] text::IdSet concerned(const module::EventBody& event);

/// Makes the record of an event that has just been applied to `module`.
[[nodiscard]] Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                                 const module::Module& module);

}  // namespace resourced::engine
