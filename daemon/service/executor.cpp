#include "daemon/service/executor.hpp"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/duration.hpp"
#include "os/log.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::service {
namespace {

// Less is how clocks are set right from time to time.
constexpr Seconds tolerated_ahead{1};

log::Record stored(engine::Record&& record) {
  return {record.sequence,
          record.event.timestamp,
          std::string(proto::event_name(record.event.body)),
          proto::encode_event(record.event),
          std::move(record.hosts),
          std::move(record.resources),
          std::move(record.changes),
          record.hidden,
          record.of_ledger,
          std::move(record.event.by),
          std::move(record.snapshot)};
}

}  // namespace

std::optional<engine::Effects::Acquired> Executor::step(const engine::Input& input,
                                                        std::optional<module::Actor> by) {
  const engine::Now now = now_();
  engine::Effects effects = engine_.step(input, now, std::move(by));
  const bool is_of_scheduler =
      std::holds_alternative<engine::Alloc>(input) || std::holds_alternative<engine::Free>(input);
  struct Logged {
    log::LoggedEvent event;
    text::IdSet ranks;
  };
  std::vector<Logged> logged;
  std::vector<log::Record> rows;
  for (engine::Record& record : effects.records) {
    listeners_.applied(record);
    if (!is_of_scheduler) listeners_.caused(record);
    text::IdSet ranks = std::move(record.ranks);
    const auto* definition = std::get_if<module::DefineEvent>(&record.event.body);
    const bool defines = definition != nullptr;
    if (defines && definition->loaded) listeners_.replaced();
    log::Record row = stored(std::move(record));
    if (row.sequence == engine_.applied() && !row.snapshot && log_.wants_snapshot())
      row.snapshot = std::make_shared<const module::Snapshot>(snapshot_of(engine_.module()));
    logged.push_back(
        {{row.sequence, row.timestamp, row.text, defines, row.resources, row.hidden, row.of_ledger},
         std::move(ranks)});
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) log_.append_all(std::move(rows));
  for (Logged& entry : logged) listeners_.logged(std::move(entry.event), std::move(entry.ranks));
  for (engine::Update& update : effects.updates)
    outbox_.push(update.after, streams::Update{update.holder, std::move(update.delta)});
  if (!effects.records.empty() || effects.health_changed) listeners_.changed();
  for (const nodes::UnfitNode& node : effects.unfit) {
    if (!node.stays) {
      os::log_warning("{} is drained: {}", node.host, node.reason);
    } else if (const auto before = unfit_.admit()) {
      os::log_warning(
          "{}, which stays drained, does not match the inventory: {} ({} more since the last such line)",
          node.host, node.reason, *before);
    }
  }
  if (const Seconds ahead = engine_.ahead_of(now.wall); !logged.empty() && ahead > tolerated_ahead) {
    if (const auto before = ahead_.admit()) {
      os::log_warning(
          "the log is {} ahead of the clock, so events have the time of the last one before; check the clock "
          "({} more since the last such line)",
          text::format_duration(ahead), *before);
    }
  }
  // An agent can say hello again and again.
  if (!effects.without_checks.empty()) {
    if (const auto before = gated_.admit()) {
      os::log_warning(
          "{} cannot come up: health-gate is set, and no checks run there ({} more since the last such "
          "line)",
          effects.without_checks.encode(), *before);
    }
  }
  for (const Error& error : effects.refused) {
    if (const auto before = refusals_.admit()) {
      os::log_warning(
          "refused a change from node agents or the enclosing instance: {} ({} more since the last such "
          "line)",
          error.what(), *before);
    }
  }
  for (const nodes::AgentNews& news : effects.agents) listeners_.agent(news);
  if (effects.discovered) listeners_.discovered(*effects.discovered);
  return std::move(effects.acquired);
}

}  // namespace resourced::daemon::service
