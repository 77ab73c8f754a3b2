#include "daemon/service/allocation_topics.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/rset/targets.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/allocation_json.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/allocations.hpp"

namespace resourced::daemon::service {

namespace {

bool names_partitions(const module::LedgerCommand& command) {
  return (!command.update || command.update->partition) &&
         std::ranges::all_of(command.frees, [](const auto& free) { return free.partition.has_value(); });
}

}  // namespace

std::vector<engine::HolderId> AllocationTopics::holders_of(proto::ClientId client) const {
  std::vector<engine::HolderId> holders;
  requests_.registry().for_each(client, [&](const streams::Stream& stream) {
    if (const auto* scheduler = std::get_if<streams::Scheduler>(&stream))
      holders.push_back(scheduler->holder);
  });
  return holders;
}

bool AllocationTopics::has_ledger(proto::ClientId client) const {
  return std::ranges::any_of(holders_of(client), [this](engine::HolderId holder) {
    return executor_.engine().acquisition().has_extension(holder, &module::Extensions::ledger);
  });
}

void AllocationTopics::respond(const Call& call) {
  if (!has_ledger(call.client)) return requests_.respond(call);
  requests_.respond(call, proto::make_payload(proto::topics::encode_sequence(executor_.engine().applied())));
}

void AllocationTopics::alloc(const Call& call) {
  // In a Flux instance the job manager reports allocations.
  executor_.module().refuse_in_instance("this daemon keeps no allocations");
  change(call);
}

void AllocationTopics::change(const Call& call) { change_for_scheduler(call, call.command()); }

void AllocationTopics::change_for_scheduler(const Call& call, module::LedgerCommand command) {
  // Once the connection has lost an acquisition, a request without a partition means another partition.
  if (!names_partitions(command)) requests_.check_not_superseded(call.client);
  try {
    executor_.step(engine::ChangeLedger{holders_of(call.client), std::move(command)}, call.actor());
  } catch (const Error& error) {
    if (error.errnum() == EPERM || error.errnum() == ENOENT) requests_.check_not_superseded(call.client);
    throw;
  }
  respond(call);
}

void AllocationTopics::force_free(const Call& call) {
  module::LedgerCommand command = call.command();
  if (call.sender.hosts != nullptr) {
    for (const module::FreeRequest& free : command.frees) {
      const module::Allocation* const allocation =
          executor_.module().ledger().find({free.partition.value_or(""), free.id});
      if (allocation == nullptr) continue;
      call.sender.check_acts_on(allocation->resources.nodelist());
      for (const module::AbsentResources& gone : allocation->absent) {
        call.sender.check_speaks_for(gone.target.host);
      }
    }
  }
  executor_.step(module::Command{std::move(command)}, call.actor());
  requests_.respond(call);
}

void AllocationTopics::update(const Call& call) {
  module::LedgerCommand command = call.command();
  const std::optional<std::string>& partition = command.update->partition;
  const bool is_of_sender = std::ranges::any_of(holders_of(call.client), [&](engine::HolderId holder) {
    const auto held = executor_.engine().acquisition().held_by(holder);
    return !partition || (held && held->partition == *partition);
  });
  if (is_of_sender || !call.sender.rights.has(peers::Right::operate))
    return change_for_scheduler(call, std::move(command));
  requests_.check_not_superseded(call.client);
  executor_.step(module::Command{std::move(command)}, call.actor());
  respond(call);
}

void AllocationTopics::list(const Call& call) {
  answers_.require_inventory();
  const auto wanted = proto::topics::parse_allocations_request(call.optional_object());
  const module::Ledger& ledger = committed_.state().ledger;
  std::optional<text::IdSet> targets;
  if (wanted.targets) targets = rset::parse_targets(*wanted.targets, committed_.state().configured);
  const WallTime now = executor_.now().wall;
  std::string list = "[";
  std::size_t listed = 0;
  std::size_t looked_at = 0;
  std::optional<module::AllocationName> last;
  // If the named targets have few allocations, look at these only.
  const auto on_targets = targets ? ledger.on(*targets, most_looked_at) : std::nullopt;
  const module::Ledger::Allocations& all = on_targets ? *on_targets : ledger.all();
  auto next = wanted.after.empty() ? all.lower_bound({wanted.partition.value_or(""), {}})
                                   : all.upper_bound(proto::topics::parse_after(wanted.after));
  for (; next != all.end(); ++next) {
    const auto& [name, allocation] = *next;
    if (wanted.partition && name.partition != *wanted.partition) {
      next = all.end();
      break;
    }
    if (++looked_at > most_looked_at || listed >= most_listed || list.size() >= most_listed_bytes) break;
    last = name;
    if (targets && (allocation->resources.ranks() & *targets).empty()) continue;
    if (listed++ > 0) list += ',';
    proto::append_allocation(list, *allocation, now);
  }
  list += ']';
  if (next == all.end()) last.reset();
  const auto sequence = has_ledger(call.client) ? std::optional(committed_.last()) : std::nullopt;
  requests_.respond(call, proto::make_payload(proto::topics::encode_allocations(list, last, sequence)));
}

}  // namespace resourced::daemon::service
