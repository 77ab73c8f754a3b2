#include "daemon/service/acquire_topics.hpp"

#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/utf8.hpp"
#include "core/rset/targets.hpp"
#include "core/text/duration.hpp"
#include "daemon/service/change_log.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/peers.hpp"

namespace resourced::daemon::service {
namespace {

// Maximum length of the reason of an eviction, in bytes, as of the note of an allocation.
constexpr std::size_t most_reason = 1024;

// Names a scheduler in the answer to another one. The user database is not asked, as this holds the loop.
std::string seen_name_of(const std::optional<module::Actor>& by) {
  return by ? name_of(*by) : "a client without a name";
}

}  // namespace

void AcquireTopics::acquire(const Call& call) {
  streams::EarlyScheduler wanted;
  wanted.of_instance = call.sender.of_instance;
  if (call.request.has(proto::flag::payload)) {
    proto::topics::AcquireRequest request = proto::topics::parse_acquire(call.object());
    wanted.partition = std::move(request.partition);
    wanted.allocations = request.allocations;
  }
  wanted.by = call.actor();
  requests_.keep(call, [&](proto::RequestKey key) {
    if (executor_.module().defined()) return hold(key, wanted);
    check_early(wanted);
    requests_.become(key, wanted);
  });
}

void AcquireTopics::hold(proto::RequestKey key, const streams::EarlyScheduler& wanted) {
  // In a Flux instance the job manager reports allocations.
  if (wanted.allocations && executor_.module().has_brokers())
    throw Error(EPROTO, "this daemon keeps no allocations");
  check_free(wanted.partition);
  const auto holder = subscribers_.add(key);
  requests_.become(key, streams::Scheduler{holder});
  const auto acquired = executor_.step(
      engine::Acquire{holder, wanted.partition, wanted.allocations || wanted.of_instance}, wanted.by);
  origins_[holder] = {executor_.now().wall, wanted.by, wanted.allocations};
  tell(wanted.by, fmt::format("has acquired {} nodes{}", acquired->resources.count(),
                              wanted.partition ? " of partition " + *wanted.partition : ""));
  keep_holders();
  std::optional<std::string> allocations;
  if (wanted.allocations) {
    allocations = proto::topics::encode_allocation_list(
        executor_.engine().allocations_of(acquired->resources, wanted.partition.value_or("")),
        executor_.now().wall);
  }
  requests_.respond(key, answers_.acquired(acquired->resources, acquired->kept, allocations));
}

void AcquireTopics::check_free(const std::optional<std::string>& partition) const {
  const module::Acquisition& acquisition = executor_.engine().acquisition();
  // The engine refuses a partition that is unknown by now.
  if (!acquisition.has(partition)) return;
  const std::string name = partition.value_or("");
  if (const auto holder = acquisition.holder_of(name)) {
    const Origin& origin = origins_.at(*holder);
    throw module::Acquisition::busy(
        name, fmt::format("{} since {}", seen_name_of(origin.by), text::format_utc(origin.since)));
  }
}

void AcquireTopics::resume(const Call& call, const streams::SchedulerPosition& position) {
  // Refuse without an inventory: resources that a scheduler is told are lost never return to it.
  executor_.engine().require_inventory();
  requests_.keep(call, [&](proto::RequestKey key) {
    const auto holder = subscribers_.add(key);
    requests_.become(key, streams::Scheduler{holder});
    executor_.step(engine::Resume{holder, position.resources, position.up, position.expiration,
                                  position.properties, position.muted});
    origins_[holder] = {executor_.now().wall, call.actor(), false};
  });
}

void AcquireTopics::mute(const Call& call) {
  executor_.step(engine::Mute{});
  requests_.respond(call);
}

void AcquireTopics::peers(const Call& call) {
  const auto wanted = proto::topics::parse_peers_request(call.optional_object());
  proto::topics::Peers peers;
  for (const auto& [holder, origin] : origins_) {
    const auto held = executor_.engine().acquisition().held_by(holder);
    if (held) peers.holders.push_back({held->kept, origin.since, origin.by, held->partition, origin.reports});
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
  tell(origin.by, "is " + why);
  // One line is enough: release() has nothing to say of a holder without an origin.
  origins_.erase(*evicted);
  for_each<streams::Scheduler>([&](proto::RequestKey key, const streams::Scheduler& scheduler) {
    if (scheduler.holder == *evicted) requests_.end(key, Error(ECONNABORTED, why));
  });
  requests_.respond(call);
}

std::vector<module::PartitionHolder> AcquireTopics::holders() const {
  std::vector<module::PartitionHolder> holders =
      executor_.engine().reservations().all(executor_.now().steady);
  for (const auto& [holder, origin] : origins_) {
    const auto held = executor_.engine().acquisition().held_by(holder);
    if (held && origin.by) holders.push_back({held->partition, *origin.by});
  }
  return holders;
}

template <class Kind, class Visit>
void AcquireTopics::for_each(Visit visit) {
  for (const proto::RequestKey key : requests_.registry().with_topic("resource.acquire")) {
    const auto* entry = requests_.registry().find(key);
    if (entry == nullptr) continue;
    if (const auto* stream = std::get_if<Kind>(&entry->stream)) visit(key, Kind(*stream));
  }
}

// Lets one scheduler of each partition wait for the inventory: a second one would be refused later.
void AcquireTopics::check_early(const streams::EarlyScheduler& wanted) {
  for_each<streams::EarlyScheduler>([&](proto::RequestKey /*key*/, const streams::EarlyScheduler& early) {
    if (early.partition.value_or("") == wanted.partition.value_or(""))
      throw module::Acquisition::busy(
          wanted.partition.value_or(""),
          fmt::format("{}, which waits for the inventory", seen_name_of(early.by)));
  });
}

void AcquireTopics::on_defined() {
  for_each<streams::EarlyScheduler>([&](proto::RequestKey key, const streams::EarlyScheduler& early) {
    try {
      hold(key, early);
    } catch (const Error& error) {
      requests_.end(key, error);
    }
  });
}

// Logs nothing in a Flux instance, as the broker's log has only the lines of Flux's own module.
void AcquireTopics::tell(const std::optional<module::Actor>& who, const std::string& what) {
  if (executor_.module().has_brokers()) return;
  if (const auto before = lines_.admit()) {
    os::log_made([who, what, left_out = *before] {
      return os::LogLine{fmt::format("the scheduler {} {} ({} more since the last such line)",
                                     who ? full_name_of(*who) : "without a name", what, left_out)};
    });
  }
}

void AcquireTopics::keep_holders() const {
  if (cluster_.keeps_holders()) cluster_.keep_holders(holders());
}

void AcquireTopics::release(const streams::Scheduler& scheduler, End end) {
  subscribers_.remove(scheduler.holder);
  if (const auto origin = origins_.find(scheduler.holder); origin != origins_.end()) {
    tell(origin->second.by, end == End::cancelled ? "has given its nodes back"
                                                  : "is gone, and its nodes are free for another one");
  }
  origins_.erase(scheduler.holder);
  executor_.step(engine::Release{scheduler.holder});
  keep_holders();
  // Other holders may have gained resources. Send their updates later, as this may be called within a flush.
  if (!executor_.engine().acquisition().partitions().empty()) deferral_.post("resource.acquire", [] {});
}

}  // namespace resourced::daemon::service
