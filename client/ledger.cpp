#include "client/ledger.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/connection_impl.hpp"
#include "client/requests.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"
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

void Ledger::begin(const std::vector<Allocation>& present, std::uint64_t sequence) {
  list_.clear();
  for (const Allocation& allocation : present)
    list_.emplace(Name(allocation.partition, allocation.id), Entry{allocation, sequence});
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
}

std::vector<Ledger::Name> Ledger::names(bool unknown) const {
  std::vector<Name> all;
  for (const auto& [number, change] : changes_) {
    if (change.is_unknown == unknown) all.insert(all.end(), change.names.begin(), change.names.end());
  }
  return all;
}

}  // namespace resourced::client
