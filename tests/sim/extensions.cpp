// Compares what a scheduler knows beyond RFC 28, by the extensions that it has asked for, with the state of
// the daemon and with the states that a second implementation computes.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulation.hpp"

namespace resourced::sim {

using nlohmann::json;

void Simulation::follow_sequence(Scheduler& scheduler, const json& body) {
  const std::uint64_t sequence = body.at("sequence");
  demand(sequence >= scheduler.sequence, "a response with an earlier number: " + body.dump());
  scheduler.sequence = sequence;
}

void Simulation::follow_extensions(Scheduler& scheduler, const json& body) {
  const auto demand_only = [&](const char* key, bool may_have) {
    demand(may_have || !body.contains(key), [&] {
      return fmt::format("a scheduler gets {}, and has not asked for it: {}", key, body.dump());
    });
  };
  const bool is_first = !scheduler.view;
  demand_only("sequence", scheduler.extensions.has_value());
  demand_only("extensions", is_first && scheduler.extensions);
  demand_only("allocations", is_first || scheduler.ledger);
  demand_only("freed", !is_first && scheduler.ledger);
  demand_only("expired", !is_first && scheduler.ledger);
  demand_only("more", is_first && scheduler.ledger);
  demand_only("scheduled", scheduler.has("scheduled"));
  demand_only("cause", !is_first && scheduler.has("cause"));
  if (!scheduler.extensions) return;
  demand(!is_first || body.at("extensions").get<std::set<std::string>>() == *scheduler.extensions,
         [&] { return "a scheduler gets other extensions than it has asked for: " + body.dump(); });
  follow_sequence(scheduler, body);
  scheduler.more = body.value("more", false);
  if (scheduler.ledger) scheduler.ledger->apply(body, std::max(latest_, now_));
  if (!body.contains("scheduled")) return;
  scheduler.scheduled = body.at("scheduled");
  const auto begins_before = [](const json& a, const json& b) { return a.at("from") < b.at("from"); };
  demand(std::is_sorted(scheduler.scheduled.begin(), scheduler.scheduled.end(), begins_before),
         [&] { return "scheduled drains that are not in their order: " + body.dump(); });
}

void Simulation::receive_page(Scheduler& scheduler, const proto::Message& message) {
  ++counts_.pages;
  const json body = json::parse(message.text());
  const auto is_known = [&](const json& allocation) {
    return scheduler.ledger->allocations.contains({allocation.at("partition"), allocation.at("id")});
  };
  scheduler.more = body.value("more", false);
  demand(body.size() == (scheduler.more ? 3 : 2) && body.at("sequence") == scheduler.sequence &&
             !body.at("allocations").empty() && std::ranges::none_of(body.at("allocations"), is_known),
         [&] { return "a response that does not continue the first one: " + body.dump(); });
  constexpr std::size_t others = 100;
  demand(body.at("allocations").size() == 1 || message.text().size() <= bounds_.page + others,
         [&] { return "a response with too many allocations: " + body.dump(); });
  scheduler.ledger->apply(body, std::max(latest_, now_));
}

void Simulation::check_cause(const Scheduler& scheduler, const json& body) {
  if (!scheduler.has("cause")) return;
  // A target that has left for good has no state any more.
  const Reference::Ranks down =
      without(parse_ranks(body.value("down", "")), parse_ranks(body.value("shrink", "")));
  std::map<std::string, Reference::Ranks> expected;
  const Reference& state = state_after(scheduler.sequence);
  for (const unsigned rank : down) {
    if (state.drained().contains(rank)) expected["drained"].insert(rank);
    if (!state.online().contains(rank)) expected["offline"].insert(rank);
    if (state.torpid().contains(rank)) expected["torpid"].insert(rank);
    if (state.excluded().contains(rank)) expected["excluded"].insert(rank);
  }
  const json cause = body.value("cause", json::object());
  std::map<std::string, Reference::Ranks> told;
  for (const auto& [name, ranks] : cause.items()) told.emplace(name, parse_ranks(ranks.get<std::string>()));
  demand(told == expected,
         [&] { return fmt::format("targets went down by other causes than {}: {}", expected, body.dump()); });
}

void Simulation::check_extensions(const Scheduler& scheduler, const Reference& state) const {
  if (scheduler.ledger) check_known_allocations(scheduler, state);
  if (!scheduler.has("scheduled")) return;
  std::map<unsigned, Reference::Schedules> known;
  for (json drain : scheduler.scheduled) {
    const Reference::Ranks ranks = parse_ranks(drain.at("idset"));
    drain.erase("idset");
    for (const unsigned rank : ranks) known[rank].emplace(drain.at("from"), drain);
  }
  std::map<unsigned, Reference::Schedules> expected;
  for (const auto& [rank, drains] : state.scheduled()) {
    if (!scheduler.view->resources.contains(rank)) continue;
    for (auto [begin, drain] : drains) {
      // Schedulers are not told who has scheduled a drain.
      drain.erase("by");
      drain.erase("ticket");
      if (drain.at("reason") == "") drain.erase("reason");
      expected[rank].emplace(begin, drain);
    }
  }
  demand(known == expected, "a scheduler knows other scheduled drains than there are");
}

void Simulation::check_known_allocations(const Scheduler& scheduler, const Reference& state) const {
  const Reference::Ranks& resources = scheduler.view->resources;
  const auto concerns = [&](const auto& allocation) {
    return !allocation.second.empty() && (!with_partition_ || allocation.first.first == scheduler.partition ||
                                          std::ranges::any_of(allocation.second, [&](const auto& core) {
                                            return resources.contains(core.first);
                                          }));
  };
  decltype(LedgerView::allocations) known = scheduler.ledger->allocations;
  decltype(LedgerView::allocations) present;
  decltype(LedgerView::notes) notes;
  for (const auto& [name, allocation] : service_->engine().module().ledger().all()) {
    if (allocation->note) notes.emplace(LedgerView::Name(name.partition, name.id), *allocation->note);
    LedgerView::Cores& cores = present[{name.partition, name.id}];
    for (const rset::ResourceGroup& group : allocation->resources.groups()) {
      group.ranks.for_each(
          [&](unsigned rank) { group.cores.for_each([&](unsigned core) { cores.emplace(rank, core); }); });
    }
  }
  std::erase_if(known, std::not_fn(concerns));
  std::erase_if(present, std::not_fn(concerns));
  demand(known == present, [&] {
    return fmt::format("a scheduler of \"{}\" knows the allocations {}, and there are {}",
                       scheduler.partition, known, present);
  });
  for (const auto& [name, cores] : present) {
    const auto find = [&name = name]<class Value>(const std::map<LedgerView::Name, Value>& all) {
      const auto found = all.find(name);
      return found == all.end() ? Value() : found->second;
    };
    demand(find(scheduler.ledger->notes) == find(notes),
           fmt::format("a scheduler knows another note of {} than {}", name, find(notes)));
    const double expiration = find(state.expirations());
    demand(find(scheduler.ledger->expirations) == expiration,
           fmt::format("a scheduler knows another expiration of {} than {}", name, expiration));
    demand(
        expiration == 0 || expiration > now_ - rounding.count() || scheduler.ledger->expired.contains(name),
        fmt::format("a scheduler does not know that {} has expired at {}", name, expiration));
  }
}

void Simulation::receive_change(Scheduler& scheduler, const proto::Message& message) {
  const auto asked = ledger_asked_.extract(message.matchtag);
  demand(!asked.empty(), "a response that no scheduler waits for");
  const Change& change = asked.mapped();
  demand(change.after && message.matchtag > scheduler.answered, "a request is answered before its turn");
  scheduler.answered = message.matchtag;
  demand(disk_.last() >= *change.after, "a change of the ledger is answered before it is on disk");
  const auto errnum = message.errnum();
  if (change.refusal) {
    ++counts_.bounded;
    return demand(errnum == *change.refusal,
                  fmt::format("an acquire ends with {} in the place of {}", errnum, *change.refusal));
  }
  if (errnum == 0) ++counts_.ledger;
  demand(errnum != 0 || scheduler.ledger || message.text().empty(),
         "an answer has a number, and its scheduler has no ledger");
  // One that still waits has no ledger: it changes the terms of an allocation as an operator.
  if (errnum == 0 && scheduler.ledger && !message.text().empty()) {
    follow_sequence(scheduler, json::parse(message.text()));
    scheduler.ledger->apply_own(change.payload, scheduler.partition, change.asked);
  }
  demand(errnum != EDQUOT || !change.fits,
         "a change of the ledger is refused for its size: " + change.payload.dump());
  if (errnum == EDQUOT) ++counts_.bounded;
  demand(errnum == 0 || errnum == EDQUOT || errnum == EPERM || errnum == EEXIST || errnum == EBUSY ||
             errnum == EINVAL || errnum == ENOENT || errnum == EHOSTDOWN,
         fmt::format("a change of the ledger ends with {}: {}", errnum, message.text()));
}

}  // namespace resourced::sim
