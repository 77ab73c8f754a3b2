// A member with the effects of its steps, and an etcd that answers at once.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/cluster/member.hpp"
#include "simulated_etcd.hpp"

namespace resourced::cluster::test {

inline Settings settings_of(const std::string& name) {
  Settings settings;
  settings.name = name;
  settings.uri = "tcp://" + name;
  settings.process = "process of " + name;
  settings.part_bytes = 8;
  return settings;
}

/// A member; records the effects of its steps.
class Seat {
 public:
  Seat(SimulatedEtcd& etcd, Settings settings, Replica replica = {})
      : etcd_(etcd), member(std::move(settings), std::move(replica)) {}

  // Runs the member for a time. etcd answers at once, or not at all.
  void run(BootTime& now, Seconds time, bool answers = true) {
    const BootTime end = now + time;
    tell(now);
    take(member.tick(now));
    while (true) {
      while (!requests_.empty()) {
        const auto [id, request] = std::move(requests_.front());
        requests_.pop_front();
        const Outcome outcome = answers ? etcd_.carry_out(request, now) : Outcome(Unknown{"gone"});
        largest_answer = std::max(largest_answer, size_of(outcome));
        take(member.answer(id, outcome, now));
        if (const auto* range = std::get_if<Watch>(&request)) {
          ++watches;
          watch_ = {id, *range};
        }
        if (std::holds_alternative<Transaction>(request)) ++transactions;
        ++requests;
      }
      const auto next = member.next_deadline();
      if (!next || *next > end) break;
      now = std::max(now, *next);
      take(member.tick(now));
    }
    now = end;
  }
  void take(Effects effects) {
    for (auto& request : effects.requests) requests_.push_back(std::move(request));
    for (Batch& batch : effects.entries) entries.push_back(std::move(batch));
    if (effects.joined) joined = effects.joined;
    if (effects.warning) warning = effects.warning;
    if (effects.committed) committed = *effects.committed;
    if (effects.ended) ended = effects.ended;
    if (effects.failed) failed = effects.failed;
    wants_snapshot = wants_snapshot || effects.wants_snapshot;
    if (effects.restores) {
      restores = effects.restores;
      restored_text.clear();
    }
    for (const std::string& chunk : effects.chunks) restored_text += chunk;
    restored = restored || effects.restored;
  }
  void tell_change(Revision revision, BootTime now) {
    take(member.answer(watch_.value().first, Changed{revision}, now));
  }
  /// Ends the watch with this outcome.
  void lose_watch(const Outcome& outcome, BootTime now) {
    take(member.answer(watch_.value().first, outcome, now));
    watch_.reset();
  }

 private:
  static std::size_t size_of(const Outcome& outcome) {
    std::size_t size = 0;
    const auto* done = std::get_if<TransactionDone>(&outcome);
    if (done == nullptr) return size;
    for (const auto& read : done->found) {
      for (const KeyValue& one : read) size += one.value.size();
    }
    return size;
  }

  // Tells the member of changes by others since the last run.
  void tell(BootTime now) {
    if (!watch_ || !hears || etcd_.last_change(watch_->second) < watch_->second.from) return;
    watch_->second.from = etcd_.last_change(watch_->second) + 1;
    take(member.answer(watch_->first, Changed{watch_->second.from - 1}, now));
  }

  SimulatedEtcd& etcd_;
  std::deque<std::pair<RequestId, Request>> requests_;
  std::optional<std::pair<RequestId, Watch>> watch_;

 public:
  /// Whether the watch tells the member of changes.
  bool hears = true;
  int watches = 0;
  int transactions = 0;
  int requests = 0;
  std::size_t largest_answer = 0;
  Member member;
  std::optional<std::string> joined;
  std::vector<Batch> entries;
  Sequence committed = 0;
  std::optional<std::string> warning;
  std::optional<std::string> ended;
  std::optional<Error> failed;
  bool wants_snapshot = false;
  std::optional<SnapshotHeader> restores;
  std::string restored_text;
  bool restored = false;
};

struct World {
  SimulatedEtcd etcd;
  BootTime now = boot_time(1000);
  void put(const std::string& key, const std::string& value) { etcd.put(key, value, now); }
  Seat leader() {
    Seat seat(etcd, settings_of("a"));
    seat.run(now, Seconds(1));
    REQUIRE(seat.member.leads());
    return seat;
  }
};

}  // namespace resourced::cluster::test
