#include "proto/topics/logged_state.hpp"

#include "core/text/idset.hpp"
#include "proto/json_text.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/status_text.hpp"

namespace resourced::proto::topics {

using module::Snapshot;
using text::IdSet;

namespace {

void append_snapshot(std::string& out, const Snapshot& snapshot) {
  const module::TargetStates& states = snapshot.states;
  append_states(out, {snapshot.inventory, states.drains, states.online, states.torpid, snapshot.exclude});
  append_ids(out, "allocated", snapshot.allocated());
  if (!snapshot.shrunk.empty()) append_removed(out, snapshot.shrunk);
  append_scheduled(out, states.scheduled);
}

void append_sched_status(std::string& out, const Snapshot& snapshot) {
  const module::TargetStates& states = snapshot.states;
  const IdSet all = snapshot.inventory.ranks() - snapshot.exclude;
  const IdSet up = states.online - states.torpid - states.drains.ranks();
  append_key(out, "all");
  out += snapshot.inventory.copy_ranks(all).encode(false);
  append_key(out, "allocated");
  out += encode_allocated(snapshot.inventory.copy_ranks(snapshot.allocated() & all), snapshot.inventory);
  append_key(out, "down");
  out += snapshot.inventory.copy_ranks(all - up).encode(false);
  append_ids(out, "reported", {});
}

}  // namespace

std::string encode_status_at(const Snapshot& snapshot, WallTime at) {
  std::string out = "{";
  append_key(out, "at");
  append_number(out, to_number(at));
  append_snapshot(out, snapshot);
  out += '}';
  return out;
}

std::string encode_log_read(LogRead read, const Snapshot& snapshot, std::uint64_t sequence) {
  std::string out = "{";
  if (read != LogRead::hostlist) {
    append_key(out, "sequence");
    out += std::to_string(sequence);
  }
  switch (read) {
    case LogRead::status:
      append_snapshot(out, snapshot);
      break;
    case LogRead::sched_status:
      append_sched_status(out, snapshot);
      break;
    case LogRead::inventory:
      append_key(out, "R");
      out += snapshot.inventory.encode();
      break;
    case LogRead::hostlist:
      append_key(out, "value");
      append_string(out, hosts_by_rank(snapshot.inventory).encode());
      append_key(out, "flags");
      out += '1';
      break;
  }
  out += '}';
  return out;
}

}  // namespace resourced::proto::topics
