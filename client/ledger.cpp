#include "client/ledger.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/connection_impl.hpp"
#include "client/requests.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::client {

namespace {

/// How long to wait while the daemon cannot carry out changes.
constexpr Milliseconds retry_pause{500};

// Names the partition of new allocations: otherwise the daemon would take that of the acquisition that has
// the targets, which another ledger of the connection may have.
struct ToRequest {
  const std::string& partition;
  LedgerRequest operator()(const LedgerChange& wanted) const { return request_of(wanted, partition); }
  LedgerRequest operator()(const AllocationUpdate& wanted) const { return request_of(wanted); }
};

const Allocation* find_allocation(const std::map<Ledger::Name, Ledger::Entry>& list,
                                  const Ledger::Name& name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second.allocation;
}

/// The cores and gpus of each target of a host, in the order of ranks.
using Parts = std::vector<std::pair<IdSet, IdSet>>;

std::map<std::string, Parts> parts_by_host(const rset::ResourceSet& resources) {
  std::map<IdSet::Id, const rset::ResourceGroup*> by_rank;
  for (const rset::ResourceGroup& group : resources.groups())
    group.ranks.for_each([&](IdSet::Id rank) { by_rank.emplace(rank, &group); });
  std::map<std::string, Parts> parts;
  for (const auto& [rank, group] : by_rank)
    parts[resources.host(rank)].emplace_back(group->cores, group->gpus);
  return parts;
}

/// Whether two allocations have the same hosts and terms, and the same cores and gpus of each host, whatever
/// its rank is. The daemon does not list what an allocation has of an absent host, so that is not compared.
/// Throws Error for a bad list of absent hosts.
bool is_same(const Allocation* a, const Allocation* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->expiration != b->expiration || a->note != b->note) return false;
  std::map<std::string, Parts> of_a = parts_by_host(a->resources);
  std::map<std::string, Parts> of_b = parts_by_host(b->resources);
  const auto forget = [](const std::string& absent, auto& of_one, auto& of_other) {
    const text::Hostlist hosts = text::Hostlist::parse(absent);
    if (hosts.size() > text::Hostlist::max_expansion) throw Error(ERANGE, "too many absent hosts");
    hosts.for_each([&](std::string_view host) {
      of_one[std::string(host)] = {};
      if (const auto found = of_other.find(std::string(host)); found != of_other.end()) found->second = {};
    });
  };
  forget(a->absent, of_a, of_b);
  forget(b->absent, of_b, of_a);
  return of_a == of_b;
}

/// Whether two lists have the same allocations of these names.
bool has_same(const std::set<Ledger::Name>& names, const std::map<Ledger::Name, Ledger::Entry>& a,
              const std::map<Ledger::Name, Ledger::Entry>& b) {
  try {
    return std::ranges::all_of(names, [&](const Ledger::Name& name) {
      return is_same(find_allocation(a, name), find_allocation(b, name));
    });
  } catch (const Error&) {
    // A bad list of absent hosts proves nothing.
    return false;
  }
}

}  // namespace

Ledger::Ledger(Connection& connection, std::string partition, bool in_use)
    : connection_(connection), partition_(std::move(partition)), ledgers_(connection.impl_->ledgers()) {
  if (in_use) ledgers_->insert(this);
}

Ledger::~Ledger() { ledgers_->erase(this); }

void Ledger::change(LedgerChange wanted, Handler handler) {
  std::set<Name> names;
  for (Freed& freed : wanted.frees) {
    if (!freed.partition) freed.partition = partition_;
    names.emplace(*freed.partition, freed.id);
  }
  for (Allocation& allocation : wanted.allocations) {
    allocation.partition = partition_;
    // The daemon takes these for none, and so does the list.
    if (allocation.expiration == WallTime{}) allocation.expiration.reset();
    if (allocation.note == "") allocation.note.reset();
    names.emplace(partition_, allocation.id);
  }
  add({std::move(wanted), std::move(handler), std::move(names)});
}

void Ledger::update(AllocationUpdate wanted, Handler handler) {
  if (!wanted.partition) wanted.partition = partition_;
  std::set<Name> names{{*wanted.partition, wanted.id}};
  add({std::move(wanted), std::move(handler), std::move(names)});
}

void Ledger::add(Change change) {
  // A change of a lost acquisition is sent later, so that sending does not refuse it here.
  connection_.refuse_in_child("ledger");
  if (has_ended_) throw Error(ECANCELED, "the acquisition of this ledger has ended: make another one");
  refuse_partitions_of_others(change.names);
  for (const Name& name : change.names) {
    if (open_.contains(name))
      throw Error(EALREADY,
                  fmt::format("allocation {}: wait for the answer to an earlier change", name.second));
  }
  const std::uint64_t number = last_change_ + 1;
  if (is_held_) {
    change.request = send(number, change);
  } else {
    const LedgerRequest request = std::visit(ToRequest{partition_}, change.wanted);
    (void)to_payload(request.topic, request.payload);  // throws for what could not be sent later
  }
  for (const Name& name : change.names) open_.emplace(name, 0);
  changes_.emplace(number, std::move(change));
  last_change_ = number;
}

void Ledger::refuse_partitions_of_others(const std::set<Name>& names) const {
  for (const Name& name : names) {
    const std::string& partition = name.first;
    const auto has = [&](const Ledger* one) { return one->partition_ == partition; };
    if (partition == partition_ || std::ranges::none_of(*ledgers_, has)) continue;
    const auto what = partition.empty()
                          ? std::string("the targets in no partition have a ledger of their own")
                          : fmt::format("partition {} has a ledger of its own", partition);
    throw Error(EINVAL,
                fmt::format("allocation {}: {} on this connection: change it there", name.second, what));
  }
}

Connection::RequestId Ledger::send(std::uint64_t number, const Change& change) {
  const LedgerRequest request = std::visit(ToRequest{partition_}, change.wanted);
  return connection_.send(request.topic, request.payload,
                          [this, number](const Response& response) { receive(number, response); });
}

void Ledger::resync() {
  if (!is_held_) return;
  for (auto& [number, change] : changes_) {
    if (change.request) continue;
    change.request = send(number, change);
    change.is_unknown = false;
  }
}

void Ledger::receive(std::uint64_t number, const Response& response) {
  // Ignore a second response to a change.
  const auto asked = changes_.find(number);
  if (asked == changes_.end()) return;
  Change& change = asked->second;
  const int errnum = response.ok() ? 0 : response.error().errnum();
  if (errnum == EAGAIN || errnum == EHOSTUNREACH) {
    change.request.reset();
    if (timer_) return;
    timer_ = connection_.after(retry_pause, [this] {
      timer_.reset();
      resync();
    });
    return;
  }
  Response answer = response;
  try {
    if (answer.ok()) {
      const auto sequence = proto::topics::parse_ledger_update(answer.payload()).sequence;
      // The daemon tells a connection only what others do.
      for (Ledger* const one : *ledgers_)
        if (one->is_held_) one->apply(change.wanted, sequence, one == this);
    }
  } catch (const Error& error) {
    answer = Response(response.topic(), error, true);
  }
  const Change answered = std::move(changes_.extract(number).mapped());
  for (const Name& name : answered.names) open_.erase(name);
  // The handler may destroy this ledger.
  if (answered.handler) answered.handler(answer);
}

void Ledger::apply(const Wanted& wanted, std::uint64_t sequence, bool own) {
  if (const auto* change = std::get_if<LedgerChange>(&wanted)) {
    for (const Freed& freed : change->frees) remove(freed, sequence);
    if (!own) return;
    for (const Allocation& allocation : change->allocations) put(allocation, sequence);
    return;
  }
  const auto& update = std::get<AllocationUpdate>(wanted);
  const auto found = list_.find({*update.partition, update.id});
  if (found == list_.end() || !is_news(found->first, sequence)) return;
  Allocation changed = found->second.allocation;
  if (update.expiration) {
    changed.expiration = *update.expiration == WallTime{} ? std::nullopt : update.expiration;
    changed.expired = false;
  }
  if (update.note) changed.note = update.note->empty() ? std::nullopt : update.note;
  // After a repetition the list may have the addition already.
  if (update.add)
    changed.resources = rset::append(changed.resources, rset::diff(*update.add, changed.resources));
  found->second = {std::move(changed), sequence};
}

bool Ledger::is_moved(const Change& change, const rset::ResourceSet& former,
                      const rset::ResourceSet& targets) const {
  const auto ranks_of = [](std::string_view host, const rset::ResourceSet& set) {
    text::Hostlist one;
    one.append(host);
    return rset::known_ranks_of_hosts(one, set);
  };
  const auto has_moved = [&](const rset::ResourceSet& named) {
    bool moved = false;
    named.ranks().for_each([&](IdSet::Id rank) {
      const std::string host = named.host(rank);
      const IdSet before = ranks_of(host, former);
      moved = moved || (targets.ranks().contains(rank) && targets.host(rank) != host) ||
              (!before.empty() && before != ranks_of(host, targets));
    });
    return moved;
  };
  if (const auto* update = std::get_if<AllocationUpdate>(&change.wanted))
    return update->add && has_moved(*update->add);
  const auto& wanted = std::get<LedgerChange>(change.wanted);
  const auto frees_moved = [&](const Freed& freed) {
    if (!freed.ranks) return false;
    const Allocation* const held = find_allocation(list_, {*freed.partition, freed.id});
    return has_moved(former.copy_ranks(*freed.ranks)) ||
           (held != nullptr && has_moved(held->resources.copy_ranks(*freed.ranks)));
  };
  const auto is_on_moved = [&](const Allocation& allocation) { return has_moved(allocation.resources); };
  return std::ranges::any_of(wanted.frees, frees_moved) ||
         std::ranges::any_of(wanted.allocations, is_on_moved);
}

void Ledger::answer_moved(std::uint64_t number, bool is_made) {
  const Change change = std::move(changes_.extract(number).mapped());
  for (const Name& name : change.names) open_.erase(name);
  if (!change.handler) return;
  const std::string topic(std::visit(ToRequest{partition_}, change.wanted).topic);
  const Error moved(ESTALE, fmt::format("allocation {}: its targets have other ranks than when it was asked "
                                        "for, or are not in the acquisition",
                                        change.names.begin()->second));
  const Response answer = is_made ? Response(topic, nullptr, true) : Response(topic, moved, false);
  answers_.push_back(
      connection_.after(Milliseconds(0), [handler = change.handler, answer] { handler(answer); }));
}

void Ledger::begin(const std::vector<Allocation>& present, std::uint64_t sequence,
                   const rset::ResourceSet& former, const rset::ResourceSet& targets) {
  constexpr std::uint64_t latest = std::numeric_limits<std::uint64_t>::max();
  answers_.clear();
  // Whether each change of moved targets could be made at all.
  std::map<std::uint64_t, bool> moved;
  if (!former.empty() && (former.ranks() != targets.ranks() || former.nodelist() != targets.nodelist())) {
    for (const auto& [number, change] : changes_)
      if (is_moved(change, former, targets)) moved.emplace(number, false);
  }
  for (auto& [number, is_possible] : moved) {
    try {
      apply(changes_.at(number).wanted, latest, true);
      is_possible = true;
    } catch (const Error&) {
      // The daemon would have refused it.
    }
  }
  const std::map<Name, Entry> expected = std::exchange(list_, {});
  for (const Allocation& allocation : present)
    list_.emplace(Name(allocation.partition, allocation.id), Entry{allocation, sequence});
  for (const auto& [number, is_possible] : moved)
    answer_moved(number, is_possible && has_same(changes_.at(number).names, expected, list_));
  for (auto& [name, newest] : open_) newest = sequence;
  is_held_ = true;
  resync();
}

void Ledger::take(const News& news) {
  for (const Freed& freed : news.freed) remove(freed, news.sequence);
  for (const Allocation& allocation : news.changed) put(allocation, news.sequence);
  for (const Name& name : news.expired) {
    const auto found = list_.find(name);
    if (found == list_.end() || !is_news(name, news.sequence)) continue;
    found->second.allocation.expired = true;
    found->second.sequence = news.sequence;
  }
}

bool Ledger::is_news(const Name& name, std::uint64_t sequence) {
  if (const auto known = list_.find(name); known != list_.end() && known->second.sequence > sequence)
    return false;
  const auto open = open_.find(name);
  if (open == open_.end()) return true;
  // An answer that is on its way may be older than this, also where the allocation is gone.
  return sequence >= std::exchange(open->second, std::max(open->second, sequence));
}

void Ledger::put(const Allocation& allocation, std::uint64_t sequence) {
  const Name name(allocation.partition, allocation.id);
  if (is_news(name, sequence)) list_[name] = {allocation, sequence};
}

void Ledger::remove(const Freed& freed, std::uint64_t sequence) {
  const Name name(freed.partition.value_or(""), freed.id);
  if (!is_news(name, sequence)) return;
  const auto found = list_.find(name);
  if (found == list_.end()) return;
  Allocation& rest = found->second.allocation;
  if (freed.ranks) rest.resources.remove_ranks(*freed.ranks & rest.resources.ranks());
  found->second.sequence = sequence;
  if (!freed.ranks || (rest.resources.empty() && rest.absent.empty())) list_.erase(found);
}

void Ledger::leave() {
  is_held_ = false;
  for (auto& [number, change] : changes_) {
    if (!change.request) continue;
    // A connection to a cluster would send a refused change again, and before the next acquire.
    connection_.forget(*std::exchange(change.request, std::nullopt));
    change.is_unknown = true;
    std::visit([](auto& wanted) { wanted.repeat = true; }, change.wanted);
  }
}

void Ledger::close() {
  leave();
  has_ended_ = true;
  ledgers_->erase(this);
  if (timer_) connection_.cancel_timer(*std::exchange(timer_, std::nullopt));
  for (const Connection::TimerId timer : std::exchange(answers_, {})) connection_.cancel_timer(timer);
}

std::vector<Ledger::Name> Ledger::names(bool unknown) const {
  std::vector<Name> all;
  for (const auto& [number, change] : changes_) {
    if (change.is_unknown == unknown) all.insert(all.end(), change.names.begin(), change.names.end());
  }
  return all;
}

}  // namespace resourced::client
