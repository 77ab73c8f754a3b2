#include "proto/topics/logged_state.hpp"

#include "core/text/idset.hpp"
#include "proto/json_text.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/status_text.hpp"

namespace resourced::proto::topics {

using module::State;
using text::IdSet;

namespace {

void append_state(std::string& out, const module::State& state) {
  const module::TargetStates& states = state.targets;
  append_states(out, {state.inventory, states.drains, states.online, states.torpid, state.exclude});
  append_ids(out, "allocated", state.allocated());
  if (const IdSet gone = state.shrunk(); !gone.empty()) append_removed(out, state.configured.hosts(gone));
  append_scheduled(out, states.scheduled);
}

void append_sched_status(std::string& out, const module::State& state) {
  const module::TargetStates& states = state.targets;
  const IdSet all = state.inventory.ranks() - state.exclude;
  const IdSet up = states.online - states.torpid - states.drains.ranks();
  append_key(out, "all");
  out += state.inventory.copy_ranks(all).encode(false);
  append_key(out, "allocated");
  out += encode_allocated(state.inventory.copy_ranks(state.allocated() & all), state.inventory);
  append_key(out, "down");
  out += state.inventory.copy_ranks(all - up).encode(false);
  append_ids(out, "reported", {});
}

}  // namespace

std::string encode_status_at(const module::State& state, WallTime at) {
  std::string out = "{";
  append_key(out, "at");
  append_number(out, to_number(at));
  append_state(out, state);
  out += '}';
  return out;
}

std::string encode_log_read(LogRead read, const module::State& state, std::uint64_t sequence) {
  std::string out = "{";
  if (read != LogRead::hostlist) {
    append_key(out, "sequence");
    out += std::to_string(sequence);
  }
  switch (read) {
    case LogRead::status:
      append_state(out, state);
      break;
    case LogRead::sched_status:
      append_sched_status(out, state);
      break;
    case LogRead::inventory:
      append_key(out, "R");
      out += state.inventory.encode();
      break;
    case LogRead::hostlist:
      append_key(out, "value");
      append_string(out, hosts_by_rank(state.inventory).encode());
      append_key(out, "flags");
      out += '1';
      break;
  }
  out += '}';
  return out;
}

}  // namespace resourced::proto::topics
