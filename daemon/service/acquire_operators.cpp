// The part of AcquireTopics for operators: resource.peers lists schedulers and agents, resource.evict ends
// the acquisition of a scheduler.
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/utf8.hpp"
#include "core/rset/targets.hpp"
#include "core/text/duration.hpp"
#include "daemon/service/acquire_topics.hpp"
#include "proto/message.hpp"
#include "proto/topics/peers.hpp"

namespace resourced::daemon::service {
namespace {

// Maximum length of the reason of an eviction, in bytes, as of the note of an allocation.
constexpr std::size_t most_reason = 1024;

}  // namespace

void AcquireTopics::peers(const Call& call) {
  const auto wanted = proto::topics::parse_peers_request(call.optional_object());
  proto::topics::Peers peers;
  for (const auto& [holder, origin] : origins_) {
    const auto held = executor_.engine().acquisition().held_by(holder);
    if (held)
      peers.holders.push_back(
          {held->kept, origin.since, origin.by, held->partition, origin.reports, origin.kept_until});
  }
  for (const auto& [number, key] : waiting_) {
    const streams::EarlyScheduler& waiter = early(key);
    peers.waiting.push_back({waiter.since, waiter.by, waiter.partition.value_or("")});
  }
  peers.agents = executor_.engine().nodes().with_agent();
  if (wanted.targets) {
    const module::Module& module = executor_.module();
    peers.unfit.emplace();
    peers.unfit_since.emplace();
    const text::IdSet ranks = rset::parse_targets(*wanted.targets, module.configured());
    const nodes::Nodes& nodes = executor_.engine().nodes();
    const engine::Now now = executor_.now();
    for (nodes::UnfitNode& node : nodes.unfit_among(ranks, module)) {
      peers.unfit->emplace(node.rank, std::move(node.reason));
      if (node.since) peers.unfit_since->emplace(node.rank, now.wall - (now.steady - *node.since));
    }
    for (const auto& [rank, origins] : nodes.rivals().origins()) {
      if (ranks.contains(rank))
        peers.unfit->emplace(rank, fmt::format("two agents say that they are this host, from {}", origins));
    }
    nodes.without_checks(ranks, module).for_each([&](text::IdSet::Id rank) {
      peers.unfit->emplace(rank, "health-gate is set, and its agent runs no checks");
    });
    peers.boots.emplace();
    (ranks & peers.agents).for_each([&](text::IdSet::Id rank) {
      if (std::string boot = nodes.boot_id(rank); !boot.empty()) peers.boots->emplace(rank, std::move(boot));
    });
  }
  requests_.respond(call, proto::make_payload(proto::topics::encode_peers(peers)));
}

void AcquireTopics::evict(const Call& call) {
  const auto wanted = proto::topics::parse_evict(call.object());
  const std::string what =
      wanted.partition.empty() ? "the resources are" : fmt::format("partition {} is", wanted.partition);
  const auto evicted = executor_.engine().acquisition().holder_of(wanted.partition);
  if (!evicted) throw Error(ENOENT, what + " acquired by no scheduler");
  const Origin origin = origins_.at(*evicted);
  if (origin.since != wanted.since) {
    throw Error(ESTALE,
                fmt::format("{} acquired by {} since {}: evict it with that time, as resource.peers has it",
                            what, seen_name_of(origin.by), text::format_utc(origin.since)));
  }
  if (wanted.reason.size() > most_reason)
    throw Error(EINVAL, fmt::format("the reason is longer than {} bytes", most_reason));
  const std::string why =
      fmt::format("evicted by {}{}{}", seen_name_of(call.actor()), wanted.reason.empty() ? "" : ": ",
                  json_text::printable_line(wanted.reason));
  const text::IdSet& targets = executor_.engine().acquisition().resources_of(*evicted);
  executor_.step(module::Command(module::EvictCommand{
                     {targets, {}, wanted.partition, origin.by, origin.since, wanted.reason}}),
                 call.actor());
  tell(origin.by, "is " + why);
  // One line is enough: release() has nothing to say of a holder without an origin.
  origins_.erase(*evicted);
  if (origin.kept_until) {
    free(*evicted);
  } else {
    requests_.end(origin.request, Error(ECONNABORTED, why));
  }
  requests_.respond(call);
}

}  // namespace resourced::daemon::service
