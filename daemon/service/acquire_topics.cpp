#include "daemon/service/acquire_topics.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/duration.hpp"
#include "daemon/service/change_log.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::service {
namespace {

// Returns the extensions that a scheduler gets of those that it wants.
std::optional<module::Extensions> granted(std::optional<module::Extensions> wanted, bool in_instance) {
  const module::Extensions all = all_extensions(in_instance);
  if (wanted)
    wanted = {wanted->ledger && all.ledger, wanted->scheduled && all.scheduled, wanted->cause && all.cause};
  return wanted;
}

proto::topics::AcquireRequest request_of(const Call& call) {
  if (!call.request.has(proto::flag::payload)) return {};
  return proto::topics::parse_acquire(call.object());
}

// Compares two secrets of the same size, in the same time wherever they differ.
bool is_same(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  return difference == 0;
}

/// Returns whether a request is of the scheduler that has this token.
bool is_of_one_scheduler(const streams::EarlyScheduler& wanted, const std::optional<module::Actor>& by,
                         std::string_view token) {
  return !wanted.token.empty() && by == wanted.by && is_same(token, wanted.token);
}

}  // namespace

std::string seen_name_of(const std::optional<module::Actor>& by) {
  return by ? name_of(*by) : "a client without a name";
}

void AcquireTopics::acquire(const Call& call) {
  streams::EarlyScheduler wanted;
  wanted.of_instance = call.sender.of_instance;
  proto::topics::AcquireRequest request = request_of(call);
  wanted.partition = std::move(request.partition);
  wanted.allocations = request.allocations;
  wanted.extensions = request.extensions;
  wanted.wait = request.wait;
  wanted.lease = request.lease;
  wanted.token = std::move(request.holder);
  wanted.by = call.actor();
  wanted.number = ++last_number_;
  wanted.since = executor_.now().wall;
  // Serve the acquires that wait first, so that this one does not overtake them.
  serve_waiting();
  requests_.keep(call, [&](proto::RequestKey key) {
    if (executor_.module().defined()) {
      try {
        hold(key, wanted);
      } catch (const Error& error) {
        if (error.errnum() != EBUSY || !wanted.wait) throw;
        wait(key, wanted);
      }
    } else {
      if (!wanted.wait) check_early(wanted);
      // The end of the former stream of this client may show that the client is gone.
      if (requests_.registry().find(key) == nullptr) return;
      wait(key, wanted);
    }
    if (wanted.lease) watch(key, {wanted.number, *wanted.lease}, executor_.now().steady + *wanted.lease);
  });
}

void AcquireTopics::wait(proto::RequestKey key, const streams::EarlyScheduler& wanted) {
  if (wanted.wait) check_wait(key.client, wanted);
  requests_.become(key, wanted);
  waiting_.emplace(wanted.number, key);
}

const streams::EarlyScheduler& AcquireTopics::early(proto::RequestKey key) const {
  return std::get<streams::EarlyScheduler>(requests_.registry().find(key)->stream);
}

void AcquireTopics::check_wait(proto::ClientId client, const streams::EarlyScheduler& wanted) const {
  const std::string partition = wanted.partition.value_or("");
  const std::string what = partition.empty() ? "the resources" : "partition " + partition;
  const auto holder = executor_.engine().acquisition().holder_of(partition);
  requests_.registry().for_each(client, [&](const streams::Stream& stream) {
    const auto* own = std::get_if<streams::Scheduler>(&stream);
    if (holder && own != nullptr && own->holder == *holder)
      throw Error(EDEADLK, fmt::format("this connection has acquired {} already", what));
  });
  std::size_t waiting = 0;
  for (const auto& [number, key] : waiting_) {
    const streams::EarlyScheduler& other = early(key);
    if (key.client == client && other.partition.value_or("") == partition)
      throw Error(EDEADLK, fmt::format("this connection waits for {} already", what));
    if (other.by == wanted.by) ++waiting;
  }
  if (const auto nothing = nothing_to_wait_for(wanted)) throw Error(*nothing);
  if (waiting < bounds_.waiting) return;
  throw Error(ENOBUFS,
              fmt::format("{} requests of {} wait for resources already", waiting, seen_name_of(wanted.by)));
}

// The configuration names the same partitions until a restart, so a reload cannot remove one. It can take the
// property away by which targets belong to one.
std::optional<Error> AcquireTopics::nothing_to_wait_for(const streams::EarlyScheduler& wanted) const {
  const module::Module& module = executor_.module();
  const module::Acquisition& acquisition = executor_.engine().acquisition();
  if (!module.defined() || !acquisition.has(wanted.partition)) return std::nullopt;
  if (!acquisition.targets_of(wanted.partition, module.inventory().ranks()).empty()) return std::nullopt;
  return Error(ENOENT, wanted.partition
                           ? fmt::format("partition {} has no targets to wait for", *wanted.partition)
                           : "outside of the partitions there are no targets to wait for");
}

// Asks the engine only once for each partition that is not free.
void AcquireTopics::serve_waiting() {
  if (!executor_.module().defined()) return;
  std::set<std::string> busy;
  for (const auto& [number, key] : std::map(waiting_)) {
    if (!is_there(key, number)) continue;
    const streams::EarlyScheduler wanted = early(key);
    const std::string partition = wanted.partition.value_or("");
    // One with a token may take over what an earlier one of the same scheduler has got.
    if (wanted.wait && busy.contains(partition) && !resumed_by(wanted)) continue;
    try {
      hold(key, wanted);
    } catch (const Error& error) {
      if (error.errnum() != EBUSY || !wanted.wait) {
        requests_.end(key, error);
      } else if (const auto nothing = nothing_to_wait_for(wanted)) {
        requests_.end(key, *nothing);
      } else {
        busy.insert(partition);
      }
    }
  }
}

void AcquireTopics::on_changed() {
  const std::uint64_t version = executor_.module().inventory_version();
  if (std::exchange(inventory_version_, version) == version || waiting_.empty()) return;
  deferral_.post("resource.acquire", [this] { serve_waiting(); });
}

void AcquireTopics::on_reservations_over() {
  keep_holders();
  deferral_.post("resource.acquire", [this] { serve_waiting(); });
}

void AcquireTopics::renew(const Call& call) { requests_.respond(call); }

bool AcquireTopics::is_there(proto::RequestKey key, std::uint64_t number) const {
  const streams::Registry::Entry* const entry = requests_.registry().find(key);
  if (entry == nullptr) return false;
  if (const auto* early = std::get_if<streams::EarlyScheduler>(&entry->stream))
    return early->number == number;
  const auto* scheduler = std::get_if<streams::Scheduler>(&entry->stream);
  return scheduler != nullptr && scheduler->number == number;
}

void AcquireTopics::watch(proto::RequestKey key, const Lease& lease, SteadyTime end, bool again) {
  // The timer cannot be stopped, so that of an acquire that ends is kept for a short time only.
  constexpr Seconds longest{5};
  constexpr Seconds least{0.1};
  const SteadyTime begun = executor_.now().steady;
  const Seconds pause = std::clamp(Seconds(end - begun), least, longest);
  deferral_.later(pause, [this, key, lease, end, again, begun, pause] {
    if (!is_there(key, lease.number)) return;
    const SteadyTime now = executor_.now().steady;
    // Time in which this loop did not run does not count. A timer that is late does not tell since when the
    // loop stood still: perhaps since the timer was set. A request that came after the time of the timer came
    // after that.
    constexpr Seconds busy{1};
    const Seconds passed = now - begun;
    const Seconds lost = passed - pause < busy ? passed - pause : passed;
    const SteadyTime heard = requests_.heard(key.client);
    SteadyTime over = std::max(heard + lease.time, end);
    if (heard <= begun + pause) over += lost;
    if (now < over) return watch(key, lease, over);
    // A request of the client may still be in a socket: read all sockets before the end.
    if (!again) return watch(key, lease, now, true);
    deferral_.post("resource.acquire", [this, key, lease, now] {
      if (!is_there(key, lease.number)) return;
      const SteadyTime renewed = requests_.heard(key.client) + lease.time;
      if (renewed > now) return watch(key, lease, renewed);
      end_lease(key, lease.time);
    });
  });
}

void AcquireTopics::end_lease(proto::RequestKey key, Seconds time) {
  const std::string length = text::format_duration(time);
  // Only a scheduler that holds targets has an origin.
  std::erase_if(origins_, [&](const auto& entry) {
    if (entry.second.request != key) return false;
    tell(entry.second.by,
         fmt::format("has sent nothing for {}: its lease is over, and its nodes are free", length));
    return true;
  });
  requests_.end(key, Error(ETIMEDOUT, "the lease is over: nothing came from this scheduler for " + length));
}

void AcquireTopics::hold(proto::RequestKey key, streams::EarlyScheduler wanted) {
  // In a Flux instance the job manager reports allocations.
  const bool in_instance = executor_.module().has_brokers();
  if (wanted.allocations && in_instance) throw Error(EPROTO, "this daemon keeps no allocations");
  // The clients of a Flux instance are those of its broker, which outlives them.
  if (in_instance) wanted.token.clear();
  take_over(wanted);
  // The end of the former stream of this client may show that the client is gone.
  if (requests_.registry().find(key) == nullptr) return;
  check_free(wanted);
  wanted.extensions = granted(wanted.extensions, in_instance);
  const module::Extensions extensions = wanted.extensions.value_or(module::Extensions{});
  // A scheduler with a ledger keeps it.
  wanted.allocations = wanted.allocations || extensions.ledger;
  const bool numbered = wanted.extensions && !in_instance;
  const auto holder = subscribers_.add(key, numbered, extensions.cause);
  std::optional<engine::Effects::Acquired> acquired;
  try {
    acquired = executor_.step(
        engine::Acquire{holder, wanted.partition, wanted.allocations || wanted.of_instance, extensions},
        wanted.by);
  } catch (const Error&) {
    subscribers_.remove(holder);
    throw;
  }
  requests_.become(key, streams::Scheduler{holder, wanted.number});
  requests_.acquired(key.client);
  waiting_.erase(wanted.number);
  origins_[holder] = {key, executor_.now().wall, wanted.by, wanted.allocations, wanted.token};
  tell(wanted.by, fmt::format("has acquired {} nodes{}", acquired->resources.count(),
                              wanted.partition ? " of partition " + *wanted.partition : ""));
  keep_holders();
  respond(key, wanted, *acquired, numbered);
}

void AcquireTopics::respond(proto::RequestKey key, const streams::EarlyScheduler& wanted,
                            const engine::Effects::Acquired& acquired, bool numbered) {
  const engine::Engine& engine = executor_.engine();
  proto::topics::AcquiredOptions options;
  options.extensions = wanted.extensions;
  if (numbered) options.sequence = engine.applied();
  const module::Extensions extensions = options.extensions.value_or(module::Extensions{});
  if (extensions.scheduled) options.scheduled = engine.scheduled_for(acquired.resources);
  if (!wanted.allocations)
    return requests_.respond(key, answers_.acquired(acquired.resources, acquired.kept, std::move(options)));
  const std::vector<module::SharedAllocation> allocations =
      engine.allocations_of(acquired.resources, wanted.partition.value_or(""), extensions.ledger);
  const WallTime now = executor_.now().wall;
  std::span<const module::SharedAllocation> rest = allocations;
  const std::size_t most = extensions.ledger ? bounds_.page : std::numeric_limits<std::size_t>::max();
  options.allocations = proto::topics::take_allocations(rest, now, most);
  options.more = !rest.empty();
  requests_.respond(key, answers_.acquired(acquired.resources, acquired.kept, std::move(options)));
  while (!rest.empty()) {
    const std::string page = proto::topics::take_allocations(rest, now, most);
    requests_.respond(key, proto::make_payload(proto::topics::encode_more_allocations(page, !rest.empty(),
                                                                                      engine.applied())));
  }
}

void AcquireTopics::check_free(const streams::EarlyScheduler& wanted) const {
  const module::Acquisition& acquisition = executor_.engine().acquisition();
  // The engine refuses a partition that is unknown by now.
  if (!acquisition.has(wanted.partition)) return;
  const std::string name = wanted.partition.value_or("");
  if (const auto holder = acquisition.holder_of(name)) {
    const Origin& origin = origins_.at(*holder);
    std::string who = fmt::format("{} since {}", seen_name_of(origin.by), text::format_utc(origin.since));
    if (origin.kept_until)
      who += fmt::format(", kept for its scheduler until {}", text::format_utc(*origin.kept_until));
    throw module::Acquisition::busy(name, who);
  }
  const engine::Now now = executor_.now();
  const auto reserved = executor_.engine().reservations().against(name, wanted.by, now.steady);
  if (!reserved) return;
  const bool is_rest = name.empty();
  throw Error(EBUSY, fmt::format("{} scheduler until {}: {} held {} before this daemon took over",
                                 is_rest ? "the resources are kept for their"
                                         : fmt::format("partition {} is kept for its", name),
                                 text::format_utc(now.wall + (reserved->until - now.steady)),
                                 seen_name_of(reserved->holder), is_rest ? "them" : "it"));
}

std::optional<engine::HolderId> AcquireTopics::resumed_by(const streams::EarlyScheduler& wanted) const {
  const auto holder = executor_.engine().acquisition().holder_of(wanted.partition.value_or(""));
  if (!holder) return std::nullopt;
  const Origin& origin = origins_.at(*holder);
  return is_of_one_scheduler(wanted, origin.by, origin.token) ? holder : std::nullopt;
}

void AcquireTopics::take_over(const streams::EarlyScheduler& wanted) {
  const auto holder = resumed_by(wanted);
  if (!holder) return;
  // The line of the acquire that follows is enough: release() has nothing to say of a holder without an
  // origin.
  const Origin origin = origins_.extract(*holder).mapped();
  if (origin.kept_until) {
    free(*holder);
  } else {
    requests_.supersede(origin.request);
  }
}

void AcquireTopics::resume(const Call& call, const streams::SchedulerPosition& position) {
  // Refuse without an inventory: resources that a scheduler is told are lost never return to it.
  executor_.engine().require_inventory();
  requests_.keep(call, [&](proto::RequestKey key) {
    const auto extensions = granted(request_of(call).extensions, true).value_or(module::Extensions{});
    const auto holder = subscribers_.add(key, false, extensions.cause);
    requests_.become(key, streams::Scheduler{holder});
    executor_.step(engine::Resume{holder, position.resources, position.up, position.expiration,
                                  position.properties, position.muted, extensions});
    origins_[holder] = {key, executor_.now().wall, call.actor(), false};
  });
}

void AcquireTopics::mute(const Call& call) {
  executor_.step(engine::Mute{});
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

// Lets one scheduler of each partition wait for the inventory: a second one would be refused later.
void AcquireTopics::check_early(const streams::EarlyScheduler& wanted) {
  const std::string partition = wanted.partition.value_or("");
  for (const auto& [number, key] : std::map(waiting_)) {
    if (!is_there(key, number)) continue;
    const streams::EarlyScheduler other = early(key);
    if (other.partition.value_or("") != partition) continue;
    if (!is_of_one_scheduler(wanted, other.by, other.token)) {
      throw module::Acquisition::busy(
          partition, fmt::format("{}, which waits for the inventory", seen_name_of(other.by)));
    }
    requests_.supersede(key);
  }
}

// Logs nothing in a Flux instance, as the broker's log has only the lines of Flux's own module.
void AcquireTopics::tell(const std::optional<module::Actor>& who, const std::string& what) {
  if (executor_.module().has_brokers()) return;
  if (const auto before = lines_.admit()) {
    os::log_made([who, what, left_out = *before] {
      return os::LogLine{
          fmt::format("the scheduler {} {}{}", who ? full_name_of(*who) : "without a name", what, left_out)};
    });
  }
}

void AcquireTopics::keep_holders() const {
  if (cluster_.keeps_holders()) cluster_.keep_holders(holders());
}

void AcquireTopics::release(const streams::Scheduler& scheduler, End end) {
  subscribers_.remove(scheduler.holder);
  const engine::HolderId holder = scheduler.holder;
  const auto origin = origins_.find(holder);
  if (end == End::lost && keep_ > Seconds(0) && origin != origins_.end() && !origin->second.token.empty()) {
    tell(origin->second.by, fmt::format("has lost its connection: its nodes are kept for it for {}",
                                        text::format_duration(keep_)));
    origin->second.kept_until = executor_.now().wall + keep_;
    return deferral_.later(keep_, [this, holder] {
      deferral_.post("resource.acquire", [this, holder] {
        if (!origins_.contains(holder)) return;
        tell(origins_.at(holder).by, "has not come back, and its nodes are free for another one");
        free(holder);
      });
    });
  }
  if (origin != origins_.end()) {
    tell(origin->second.by, end == End::cancelled ? "has given its nodes back"
                                                  : "is gone, and its nodes are free for another one");
  }
  free(holder);
}

void AcquireTopics::free(engine::HolderId holder) {
  origins_.erase(holder);
  executor_.step(engine::Release{holder});
  keep_holders();
  // Other holders may have gained resources. Send their updates later, as this may be called within a flush.
  if (!executor_.engine().acquisition().partitions().empty() || !waiting_.empty())
    deferral_.post("resource.acquire", [this] { serve_waiting(); });
}

}  // namespace resourced::daemon::service
