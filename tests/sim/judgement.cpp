// Checks of the messages that clients receive: each is compared with the log on disk and with the states that
// a second implementation computes from it.
#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulation.hpp"
#include "state_difference.hpp"

namespace resourced::sim {

using nlohmann::json;

const Reference& Simulation::state_after(std::uint64_t sequence) {
  if (sequence <= states_begin_) return before_;
  while (states_begin_ + states_.size() < sequence) {
    Reference next = states_.empty() ? before_ : states_.back();
    const std::uint64_t number = states_begin_ + states_.size() + 1;
    const json event = json::parse(log_->record(number).text);
    const double before = number > 1 ? to_number(log_->record(number - 1).timestamp) : 0;
    demand(event.at("timestamp") >= before, "an event that is earlier than the one before: " + event.dump());
    if (const auto reload = reloads_.find(number); reload != reloads_.end()) {
      const auto& [exclude, hosts] = reload->second;
      if (hosts) next.load(*hosts, json::parse(*log_->record(number).resources));
      next.exclude(exclude);
    }
    next.apply(event);
    states_.push_back(std::move(next));
  }
  return states_.at(sequence - states_begin_ - 1);
}

void Simulation::deliver() {
  while (!transport_.sent.empty()) {
    const auto [client, message] = std::move(transport_.sent.front());
    transport_.sent.pop_front();
    ++received_;
    receive(client, message);
  }
  check_gate();
  check_rolling();
}

void Simulation::check_gate() {
  const module::Module& module = service_->engine().module();
  if (with_agents_ && agent_settings_.health.gate) {
    (module.online() - seen_online_).for_each([&](unsigned rank) {
      const std::string& host = configuration_.hosts.at(rank);
      demand(passed_.contains(host), fmt::format("{} comes online, and no check there has passed", host));
    });
  }
  seen_online_ = module.online();
}

void Simulation::receive(ClientId client, const proto::Message& message) {
  if (client == operator_) {
    const auto asked = asked_.extract(message.matchtag);
    demand(!asked.empty(), "a response that nobody waits for");
    receive(asked.mapped(), message);
  } else if (const auto scheduler = schedulers_.find(client); scheduler != schedulers_.end()) {
    receive(scheduler->second, message);
  } else if (const auto consumer = consumers_.find(client); consumer != consumers_.end()) {
    receive(consumer->second, message);
  } else if (client == roller_client_) {
    const auto asked = roller_asked_.extract(message.matchtag);
    if (asked.empty()) return;
    roller_answered_ = asked.mapped();
    if (message.topic == "resource.status") roller_answered_ = roller_looked_ = service_->committed().last();
    demand(message.errnum() != 0 || disk_.last() >= roller_answered_,
           "a request of rolling work is answered before its change is on disk");
    roller_.receive(message);
  } else if (agents_.contains(client) && message.errnum() != 0) {
    // Another agent has replaced it, or its target has left.
    if (message.errnum() == EEXIST) ousted_.emplace(client, agents_.at(client).host);
    agents_.erase(client);
  }
}

void Simulation::receive(const Asked& asked, const proto::Message& message) {
  ++counts_.responses;
  demand(disk_.last() >= asked.after,
         fmt::format("answered before event {} was on disk: {}", asked.after, asked.what));
  if (asked.errnum && message.errnum() != *asked.errnum) {
    throw Violation(fmt::format("{} was answered with {} in the place of {}: {}", asked.what,
                                message.errnum(), *asked.errnum, message.text()));
  }
  // The operator reads at once, so the answer shows the state that is committed now.
  if (asked.is_status) check_status(json::parse(message.text()), state_after(service_->committed().last()));
}

// With all time that has passed taken by the daemon.
void Simulation::check_scheduled(const Reference& state) const {
  const auto drained = state.drained();
  const double passed = now_ - rounding.count();
  for (const auto& [rank, drains] : state.scheduled()) {
    for (const auto& [begin, drain] : drains) {
      const bool is_over = drain.contains("until") && drain.at("until") <= passed;
      demand(!is_over, fmt::format("the scheduled drain of rank {} is over: {}", rank, drain.dump()));
      demand(drained.contains(rank) || begin > passed,
             fmt::format("the scheduled drain of rank {} has not begun: {}", rank, drain.dump()));
    }
  }
}

void Simulation::check_log() const {
  if (log_->unsynced() > 0) return;
  const std::string difference = test::state_difference(service_->engine().module().state(), disk_.state());
  demand(difference.empty(), "the log leads to a state with another " + difference);
}

void Simulation::check_ledger(const Reference& state) const {
  Reference::Allocations present;
  Reference::Expirations expirations;
  std::set<std::pair<unsigned, unsigned>> held;
  std::map<std::string, std::size_t> bytes;
  const module::Module& module = service_->engine().module();
  for (const auto& [name, allocation] : module.ledger().all()) {
    if (allocation->expiration) expirations[{name.partition, name.id}] = to_number(*allocation->expiration);
    bytes[name.partition] += allocation->text->size() + name.id.size() + allocation->note.value_or("").size();
    Reference::Cores& cores = present[{name.partition, name.id}];
    for (const rset::ResourceGroup& group : allocation->resources.groups()) {
      group.ranks.for_each([&](unsigned rank) {
        group.cores.for_each([&](unsigned core) {
          demand(held.emplace(rank, core).second,
                 fmt::format("core {} of rank {} is held twice", core, rank));
          cores.emplace(module.configured().host(rank), core);
        });
      });
    }
    for (const module::AbsentResources& absent : allocation->absent)
      absent.cores.for_each([&](unsigned core) { cores.emplace(absent.target.host, core); });
  }
  const Standing size = standing();
  demand(
      size.of_rest == bytes[""] && size.of_left == bytes["left"] && size.bytes == bytes[""] + bytes["left"],
      "the ledger has another size than its allocations");
  demand(present == state.allocations(), [&] {
    return fmt::format("the ledger has the allocations {}, and the log {}", present, state.allocations());
  });
  demand(expirations == state.expirations(), [&] {
    return fmt::format("allocations expire at {}, and by the log at {}", expirations, state.expirations());
  });
}

void Simulation::check_freed(std::uint64_t before) {
  for (std::uint64_t number = before + 1; number <= service_->engine().applied(); ++number) {
    const json event = json::parse(log_->record(number).text);
    if (event.at("name") != "free") continue;
    const json& context = event.at("context");
    demand(ledger_rules_.free_expired,
           "an allocation is freed as it has expired, and must not: " + context.dump());
    demand(uptime_ >= distrusted_until_,
           "an allocation is freed by a clock that may be wrong: " + context.dump());
    const Reference::Expirations& expirations = state_after(number - 1).expirations();
    for (const std::string id : context.at("ids")) {
      const auto found = expirations.find({context.at("partition"), id});
      demand(found != expirations.end() && found->second <= now_,
             fmt::format("allocation {} is freed at {}, before it has expired", id, now_));
      ++counts_.expired;
    }
  }
}

void Simulation::check_expired(const Reference& state) const {
  if (!ledger_rules_.free_expired || uptime_ < unsure_until_) return;
  for (const auto& [name, expiration] : state.expirations()) {
    demand(expiration > now_ - unsure.count(),
           fmt::format("allocation {} has expired at {}, and is not freed at {}", name, expiration, now_));
  }
}

Reference::Ranks Simulation::part_of(const std::string& partition, const Reference& state) const {
  const Reference::Ranks all = state.present();
  if (!with_partition_) return all;
  Reference::Ranks left;
  for (unsigned rank = 0; rank < state.targets() / 2; ++rank) left.insert(rank);
  return partition.empty() ? without(all, left) : shared(all, left);
}

bool Simulation::was_empty(const Scheduler& scheduler, std::uint64_t last) {
  for (std::uint64_t sequence = scheduler.seen; sequence <= last; ++sequence)
    if (part_of(scheduler.partition, state_after(sequence)).empty()) return true;
  return false;
}

void Simulation::receive(Scheduler& scheduler, const proto::Message& message) {
  if (message.matchtag != scheduler.matchtag) return receive_change(scheduler, message);
  demand(disk_.last() >= scheduler.seen, "an acquire was answered before the state was on disk");
  if (message.errnum() != 0) {
    const std::uint32_t expected = scheduler.is_second && !scheduler.waits ? EBUSY : ECANCELED;
    const bool is_found = message.errnum() == ETIMEDOUT && scheduler.ended == 0 && may_be_over(scheduler);
    // There is nothing to wait for in a partition without targets.
    const bool is_vain = message.errnum() == ENOENT && scheduler.is_second && scheduler.waits &&
                         was_empty(scheduler, disk_.last());
    demand(is_found || is_vain || message.errnum() == (scheduler.ended != 0 ? scheduler.ended : expected),
           fmt::format("an acquire ended with {}: {}", message.errnum(), message.text()));
    if (message.errnum() == ETIMEDOUT) ++counts_.leases;
    schedulers_.erase(scheduler.client);
    return;
  }
  if (scheduler.more) return receive_page(scheduler, message);
  const json body = json::parse(message.text());
  const bool has_waited = scheduler.is_second && scheduler.waits;
  if (has_waited) {
    for (const auto& [client, other] : schedulers_) {
      demand(other.partition != scheduler.partition || !other.waits || !other.is_second ||
                 other.turn >= scheduler.turn || other.ended != 0 || may_be_over(other) ||
                 may_have_ended(other),
             "a scheduler is served before another one that has waited for longer");
    }
    scheduler.is_second = false;
    // It is not known when it was served.
    scheduler.since = 0;
  }
  demand(!scheduler.is_second, "a second scheduler has what another one holds");
  follow_extensions(scheduler, body);
  if (!scheduler.view) {
    scheduler.view.emplace(body);
    if (scheduler.extensions) {
      demand(scheduler.sequence >= scheduler.seen, "a first response with an early number");
      scheduler.seen = scheduler.sequence;
    }
    const auto resources_at = [&](const Reference& state) {
      return without(part_of(scheduler.partition, state), state.excluded());
    };
    // One that has waited was served at some time since then.
    const auto is_state = [&](const Reference& state) {
      return shows(*scheduler.view, state) && scheduler.view->resources == resources_at(state);
    };
    while (has_waited && scheduler.seen < disk_.last() && !is_state(state_after(scheduler.seen)))
      ++scheduler.seen;
    const Reference& state = state_after(scheduler.seen);
    check_first(*scheduler.view, state, resources_at(state));
    return;
  }
  ++counts_.deltas;
  View& view = *scheduler.view;
  view.apply(body);
  if (scheduler.extensions) {
    demand(shows(view, state_after(scheduler.sequence)),
           "a change that does not lead to the state of its number: " + body.dump());
  }
  check_cause(scheduler, body);
  // The view must be the state after some event on disk, at or after the previous one.
  for (std::uint64_t sequence = scheduler.seen; sequence <= disk_.last(); ++sequence) {
    if (shows(view, state_after(sequence))) {
      scheduler.seen = sequence;
      return;
    }
  }
  demand(false, "a change that leads to no state on disk: " + body.dump());
}

void Simulation::receive(Consumer& consumer, const proto::Message& message) {
  if (message.errnum() != 0) {
    demand(message.errnum() == EOVERFLOW || message.errnum() == ENODATA,
           fmt::format("a journal ended with {}: {}", message.errnum(), message.text()));
    consumers_.erase(consumer.client);
    return;
  }
  const json body = json::parse(message.text());
  for (const json& event : body.at("events")) {
    if (event.at("name") == "truncate") {
      demand(consumer.next == std::vector<std::uint64_t>{1}, "a truncate in the middle of a journal");
      consumer.next.resize(disk_.last());
      std::iota(consumer.next.begin(), consumer.next.end(), 1);
      continue;
    }
    // Equal events with the same time differ by the events that follow, and definitions by their R.
    const bool has_r = body.at("events").size() == 1;
    const auto is_on_disk = [&](std::uint64_t number) {
      if (number > disk_.last()) return false;
      const daemon::log::Record& record = disk_.records[number - 1];
      // Compare the time first: parsing all records would take most of the run.
      return to_number(record.timestamp) == event.at("timestamp") && json::parse(record.text) == event &&
             (!record.resources || !has_r || body.at("R") == json::parse(*record.resources));
    };
    std::vector<std::uint64_t> after;
    for (const std::uint64_t number : consumer.next) {
      if (is_on_disk(number)) after.push_back(number + 1);
    }
    if (after.empty()) {
      throw Violation(fmt::format("the journal has {} in the place of event {}", body.dump(),
                                  fmt::join(consumer.next, " or ")));
    }
    consumer.next = std::move(after);
  }
  // It is the number of the last event, so it tells equal events apart.
  const auto last = body.at("last").get<std::uint64_t>();
  demand(std::ranges::find(consumer.next, last + 1) != consumer.next.end(),
         fmt::format("a journal that goes on at {} tells of event {}: {}", fmt::join(consumer.next, " or "),
                     last, body.dump()));
  consumer.next = {last + 1};
}

void Simulation::check_views() {
  end_kept();
  const Reference& state = state_after(disk_.last());
  Reference::Ranks given;
  for (const auto& [client, scheduler] : schedulers_) {
    demand(scheduler.ended == 0, [&one = scheduler] {
      return fmt::format("a scheduler of \"{}\" has not heard that it has ended with {}", one.partition,
                         one.ended);
    });
    if (!scheduler.view && scheduler.waits) {
      const std::string& partition = scheduler.partition;
      demand(kept_.contains(partition) || std::ranges::any_of(schedulers_,
                                                              [&](const auto& other) {
                                                                return other.second.partition == partition &&
                                                                       other.second.view;
                                                              }),
             "a scheduler waits for what nobody holds");
      continue;
    }
    demand(scheduler.view.has_value(), "an acquire without a response");
    demand(!scheduler.more, "a first response without an end");
    const View& view = *scheduler.view;
    check_extensions(scheduler, state);
    demand(view.resources == shared(state.present(), view.resources), "a scheduler has targets that left");
    demand(view.up == shared(state.available(), view.resources), "a scheduler has not heard of all changes");
    demand(has_properties(view, state), "a scheduler has other properties");
    demand(view.expiration == state.expiration(), "a scheduler has another expiration");
    demand(shared(given, view.resources).empty(), "a target is held twice");
    given.insert(view.resources.begin(), view.resources.end());
  }
  for (const auto& [client, consumer] : consumers_)
    demand(consumer.next.back() == disk_.last() + 1, "a journal that is not at its end");
}

}  // namespace resourced::sim
