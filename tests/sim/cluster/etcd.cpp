#include "etcd.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "checks.hpp"
#include "core/cluster/keys.hpp"
#include "daemon/log/etcd/record_json.hpp"

namespace resourced::sim {

using nlohmann::json;

cluster::Outcome Etcd::carry_out(const cluster::Request& request, SteadyTime now) {
  cluster::Outcome outcome = etcd_.carry_out(request, BootTime(now.time_since_epoch()));
  const auto head = etcd_.keys().find(std::string(cluster::head_key));
  if (head == etcd_.keys().end()) {
    demand(log_.empty(), "the head of the log is gone");
  } else if (head->second.modified != head_revision_) {
    head_revision_ = head->second.modified;
    take_commit(cluster::sequence_of(head->second));
  }
  return outcome;
}

void Etcd::take_commit(std::uint64_t last) {
  demand(last > log_.size(), fmt::format("the log ends with event {} and is set to {}", log_.size(), last));
  const cluster::KeyValue& batch = etcd_.keys().at(cluster::log_key(last));
  const std::size_t line = batch.value.find('\n');
  const json header = json::parse(batch.value.substr(0, line));
  const std::uint64_t first = header.at("first");
  const cluster::Revision epoch = header.at("epoch");
  demand(first == log_.size() + 1, fmt::format("event {} is committed after {}", first, log_.size()));
  std::string text = batch.value.substr(line + 1);
  for (std::size_t part = 0; part < header.at("parts"); ++part)
    text += etcd_.keys().at(cluster::part_key(last, epoch, part)).value;
  const auto leader = etcd_.keys().find(std::string(cluster::leader_key));
  demand(leader != etcd_.keys().end() && leader->second.created == epoch,
         fmt::format("event {} is committed by epoch {}, which does not lead", first, epoch));
  demand(log_.empty() || log_.back().epoch <= epoch, "an epoch that is lower than that of the event before");
  for (daemon::log::Record& record : daemon::log::etcd::decode_records(text, first, last)) {
    json event = json::parse(record.text);
    demand(log_.empty() || log_.back().record.timestamp <= record.timestamp,
           "an event that is earlier than the one before: " + record.text);
    if (record.name == "evict") check_evicted();
    const json& context = event.at("context");
    if (record.name == "drain" && context.contains("reason"))
      demand(marks_.emplace(context.at("reason"), record.sequence).second,
             "a drain is in the log twice: " + record.text);
    if (record.name == "alloc") {
      for (const json& allocation : context.at("allocations"))
        demand(marks_.emplace(allocation.at("id"), record.sequence).second,
               "an allocation is in the log twice: " + record.text);
    }
    log_.push_back({std::move(record), std::move(event), epoch});
  }
}

// Another scheduler may have acquired in the same commit.
void Etcd::check_evicted() const {
  const auto holders = etcd_.keys().find(std::string(cluster::holders_key));
  demand(holders != etcd_.keys().end() && holders->second.modified == head_revision_,
         "a scheduler is evicted, and the holders in etcd do not change with that");
}

std::uint64_t Etcd::find(const std::string& mark) const {
  const auto found = marks_.find(mark);
  return found == marks_.end() ? 0 : found->second;
}

bool Etcd::is_within_start(std::uint64_t sequence) const {
  for (std::uint64_t at = sequence; at > 0 && log_[at - 1].epoch == log_[sequence - 1].epoch; --at) {
    if (log_[at - 1].record.snapshot) return false;
  }
  return sequence > 0;
}

const Reference& Etcd::state_after(std::uint64_t sequence) {
  demand(sequence <= log_.size(),
         [&] { return fmt::format("event {} is told of, and is not in etcd", sequence); });
  while (states_.size() <= sequence) {
    Reference next = states_.back();
    const Entry& entry = log_[states_.size() - 1];
    const bool is_start = states_.size() == 1 || log_[states_.size() - 2].epoch != entry.epoch;
    if (is_start) next.begin(starts_.at(entry.epoch));
    next.apply(entry.event);
    states_.push_back(std::move(next));
  }
  return states_[sequence];
}

}  // namespace resourced::sim
