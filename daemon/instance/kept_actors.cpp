#include "daemon/instance/kept_actors.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/module/event.hpp"
#include "core/module/module.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::instance {

using module::DrainGroup;
using text::IdSet;

namespace {

/// Applies one line, in present ranks.
void fold_line(std::string_view line, const Brokers& brokers, module::TargetStates& states) {
  auto event = proto::decode_event(read_object(line));
  if (!event) return;
  if (auto* drain = std::get_if<module::DrainEvent>(&event->body)) {
    drain->ranks = brokers.present_ranks(drain->ranks, drain->nodelist);
  } else if (auto* undrain = std::get_if<module::UndrainEvent>(&event->body)) {
    undrain->ranks = brokers.present_ranks(undrain->ranks, undrain->nodelist);
  } else {
    return;
  }
  (void)fold_states(*event, states);
}

// Returns the actor of a drain. Another module may have changed the drain since, so its time and reason must
// be the same.
std::optional<module::Actor> actor_of(IdSet::Id rank, const DrainGroup& group,
                                      const module::DrainTable& told) {
  const module::Drain* const found = told.find(rank);
  const bool is_same = found != nullptr && found->timestamp == group.timestamp &&
                       found->reason.value_or("") == group.reason.value_or("");
  return is_same ? found->by : std::nullopt;
}

std::string line_of(const DrainGroup& group, const Brokers& brokers) {
  module::DrainEvent drain{group.terms(), group.ranks,
                           brokers.hosts_of(group.ranks).value_or(text::Hostlist()),
                           module::Overwrite::reason_and_timestamp};
  return proto::encode_event({group.timestamp, std::move(drain), group.by}) + '\n';
}

}  // namespace

KeptActors read_kept_actors(std::string_view log, const std::vector<DrainGroup>& drains,
                            const Brokers& brokers) {
  module::TargetStates states;
  std::size_t lines = 0;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    fold_line(line, brokers, states);
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    ++lines;
  }
  KeptActors kept;
  std::string present;
  std::size_t needed = 0;
  for (const DrainGroup& group : drains) {
    std::map<std::optional<module::Actor>, IdSet> by_actor;
    group.ranks.for_each(
        [&](IdSet::Id rank) { by_actor[actor_of(rank, group, states.drains)].insert(rank); });
    for (auto& [by, ranks] : by_actor) {
      kept.drains.push_back({{group.terms(), group.timestamp, by}, std::move(ranks)});
      if (!by) continue;
      present += line_of(kept.drains.back(), brokers);
      ++needed;
    }
  }
  if (lines > needed) kept.rewritten = std::move(present);
  return kept;
}

}  // namespace resourced::daemon::instance
