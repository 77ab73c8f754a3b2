// Requests that change the ledger, of any scheduler or of the operator, with any ids and targets, so that
// many are refused. The reference knows what an allocation has of a host, not of each of its targets: an
// allocation that may get other cores on some of its targets gets and frees them only of hosts with one
// target.
#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "core/rset/resource_set.hpp"
#include "simulation.hpp"

namespace resourced::sim {

using nlohmann::json;

namespace {

bool may_grow(const std::string& id) { return id.size() == 2 && id < "j6"; }

}  // namespace

std::string Simulation::any_id() { return fmt::format("j{}", below(12)); }

std::string Simulation::any_partition() { return with_partition_ && chance(0.5) ? "left" : ""; }

// Whether an allocation has another target of this host, which the inventory lacks.
bool Simulation::is_absent(const std::string& host) const {
  return std::ranges::any_of(service_->engine().module().ledger().all(), [&](const auto& allocation) {
    return std::ranges::any_of(allocation.second->absent,
                               [&](const auto& absent) { return absent.target.host == host; });
  });
}

Reference::Ranks Simulation::any_ranks(bool of_single_hosts) {
  Reference::Ranks ranks;
  for (std::uint32_t i = 1 + below(2); i > 0; --i) {
    const std::uint32_t rank = below(static_cast<std::uint32_t>(configuration_.hosts.size()));
    const std::string& host = configuration_.hosts[rank];
    if (!of_single_hosts || (has_one_target(host) && !is_absent(host))) ranks.insert(rank);
  }
  return ranks;
}

json Simulation::any_resources(const Reference::Ranks& ranks) {
  const text::IdSet cores = text::IdSet::range(below(3), 3);
  text::Hostlist hosts;
  for (const unsigned rank : ranks) hosts.append(configuration_.hosts[rank]);
  const rset::ResourceSet resources({{idset_of(ranks), chance(0.5) ? cores : text::IdSet{below(4)}, {}}},
                                    hosts);
  return resources.to_json();
}

Reference::Ranks Simulation::any_held(const Scheduler& scheduler) {
  if (!scheduler.view || scheduler.view->up.empty() || chance(0.3)) return any_ranks();
  const Reference::Ranks& up = scheduler.view->up;
  Reference::Ranks ranks;
  for (std::uint32_t i = 1 + below(2); i > 0; --i)
    ranks.insert(*std::next(up.begin(), below(static_cast<std::uint32_t>(up.size()))));
  return ranks;
}

json Simulation::any_allocation(const Scheduler& scheduler) {
  json allocation{{"id", any_id()}, {"R", any_resources(any_held(scheduler))}};
  if (chance(0.4)) allocation["expiration"] = any_expiration();
  if (chance(0.4)) allocation["note"] = fmt::format("{}", below(3));
  return allocation;
}

json Simulation::any_free(double exists) {
  const module::Ledger::Allocations& all = service_->engine().module().ledger().all();
  if (!all.empty() && chance(exists)) {
    const auto& [name, allocation] = *random_peer(all);
    json known{{"id", name.id}, {"partition", name.partition}};
    const text::IdSet& ranks = allocation->resources.ranks();
    const bool may_free_part = !may_grow(name.id) && ranks.count() > 1;
    if (may_free_part && chance(0.5)) known["ranks"] = text::IdSet{ranks.first()}.encode();
    return known;
  }
  json free{{"id", any_id()}};
  if (chance(0.4)) free["ranks"] = idset_of(any_ranks(may_grow(free["id"]))).encode();
  // Often the partition of another scheduler, whose allocations have the same ids.
  if (chance(0.5)) free["partition"] = any_partition();
  return free;
}

json Simulation::alloc_again(const Scheduler& scheduler, const module::Allocation& allocation) {
  json again{{"id", allocation.name.id}, {"R", any_resources(any_held(scheduler))}, {"repeat", true}};
  if (allocation.note) again["note"] = *allocation.note;
  if (allocation.expiration) again["expiration"] = to_number(*allocation.expiration);
  return again;
}

json Simulation::free_whole_and_part(const Allocations& own) {
  for (const module::SharedAllocation& whole : own) {
    for (const module::SharedAllocation& part : own) {
      const text::IdSet& ranks = part->resources.ranks();
      if (part == whole || may_grow(part->name.id) || ranks.count() < 2) continue;
      const std::string first = text::IdSet{ranks.first()}.encode();
      return {{"free", {{{"id", whole->name.id}}, {{"id", part->name.id}, {"ranks", first}}}}};
    }
  }
  return {};
}

void Simulation::change_own(ClientId client, const Scheduler& scheduler) {
  Allocations own;
  for (const auto& [name, allocation] : service_->engine().module().ledger().all())
    if (name.partition == scheduler.partition) own.push_back(allocation);
  // The allocation of a scheduler that reads late has expired when it is made, and ends before it is read of.
  if (transport_.stalled.contains(client)) {
    json ended = any_allocation(scheduler);
    ended["expiration"] = std::max(1.0, now_ - 5);
    ask_change(client, "resource.alloc", ended, false);
    return deliver();
  }
  if (own.empty()) return;
  const bool allocs = chance(0.5);
  const module::Allocation& one = *own[below(static_cast<std::uint32_t>(own.size()))];
  const json payload = allocs ? alloc_again(scheduler, one) : free_whole_and_part(own);
  if (!payload.empty()) ask_change(client, allocs ? "resource.alloc" : "resource.free", payload, false);
  deliver();
}

double Simulation::any_expiration() {
  static const std::vector<double> spans{-5, 2, 20, 300};
  return std::max(1.0, now_ + spans[below(static_cast<std::uint32_t>(spans.size()))]);
}

void Simulation::change_ledger() {
  if (chance(0.1)) return force_free();
  if (schedulers_.empty()) return;
  const auto sender = random_peer(schedulers_);
  if (sender->second.hangs) return;
  if (chance(0.1)) return change_own(sender->first, sender->second);
  const bool allocs = chance(0.6);
  const bool updates = !allocs && chance(0.3);
  json payload = any_free(0.15);
  if (allocs) {
    payload = any_allocation(sender->second);
    if (chance(0.2)) payload = {{"allocations", json::array({payload, any_allocation(sender->second)})}};
  }
  if (updates) {
    payload.erase("ranks");
    payload["note"] = chance(0.3) ? "" : fmt::format("{}", below(3));
    if (chance(0.5)) payload["expiration"] = chance(0.2) ? 0 : any_expiration();
    const Reference::Ranks more = may_grow(payload["id"]) ? any_ranks(true) : Reference::Ranks();
    if (!more.empty()) payload["add"] = any_resources(more);
  } else if (chance(0.3)) {
    json& frees = payload["free"] = json::array();
    for (std::uint32_t i = 1 + below(2); i > 0; --i) frees.push_back(any_free(0.6));
    // Some replace an allocation by another one with its id.
    if (allocs && chance(0.3)) frees = json::array({{{"id", payload.value("id", any_id())}}});
  }
  const char* const topic = allocs ? "resource.alloc" : updates ? "resource.alloc-update" : "resource.free";
  ask_change(sender->first, topic, payload, false);
  if (chance(0.3)) {
    payload["repeat"] = true;
    ask_change(sender->first, topic, payload, true);
  }
  deliver();
}

void Simulation::force_free() {
  json payload = any_free(0.15);
  if (chance(0.3)) payload["free"] = json::array({any_free(0.15)});
  note(fmt::format("resource.force-free {}", payload.dump()));
  const std::uint64_t before = service_->engine().applied();
  const std::uint32_t matchtag = request(operator_, "resource.force-free", payload);
  if (service_->engine().applied() > before) operator_change_ = service_->engine().applied();
  asked_.emplace(matchtag, Asked{trace_.back(), false, service_->engine().applied()});
  deliver();
}

}  // namespace resourced::sim
