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

// Smaller differences occur when clocks are corrected, and are not logged.
constexpr Seconds tolerated_ahead{1};

}  // namespace

std::optional<engine::Effects::Acquired> Executor::step(engine::Input input,
                                                        std::optional<module::Actor> by) {
  const engine::Now now = this->now();
  const bool is_of_scheduler = std::holds_alternative<engine::ChangeLedger>(input);
  engine::Effects effects = engine_.step(std::move(input), now, std::move(by));
  struct Logged {
    log::LoggedEvent event;
    text::IdSet ranks;
  };
  std::vector<Logged> logged;
  std::vector<log::Record> rows;
  for (engine::Record& record : effects.records) {
    const auto* definition = std::get_if<module::DefineEvent>(&record.event.body);
    const bool defines = definition != nullptr;
    if (defines && definition->loaded) listener_.on_replaced();
    log::Record row = log::make_record(record);
    if (row.sequence == engine_.applied() && !row.snapshot && log_.wants_snapshot())
      row.snapshot = std::make_shared<const module::State>(engine_.module().state());
    logged.push_back(
        {{row.sequence, row.timestamp, row.text, defines, row.resources, row.audience}, record.ranks});
    rows.push_back(std::move(row));
    listener_.on_applied({std::move(record), is_of_scheduler, now.steady});
  }
  if (!rows.empty()) log_.append_all(std::move(rows));
  for (Logged& entry : logged) listener_.on_logged(std::move(entry.event), std::move(entry.ranks));
  for (engine::Update& update : effects.updates)
    outbox_.push(update.after, streams::Update{update.holder, std::move(update.delta)});
  if (!effects.records.empty() || effects.health_changed) listener_.on_changed();
  for (const nodes::UnfitNode& node : effects.unfit) {
    if (!node.stays) {
      os::log_warning("{} is drained: {}", node.host, node.reason);
    } else if (const auto before = unfit_.admit()) {
      os::log_warning("{}, which stays drained, does not match the inventory: {}{}", node.host, node.reason,
                      *before);
    }
  }
  for (const nodes::Rivalry& rivalry : effects.rivalries) {
    const auto before = rivals_.admit();
    if (!before) continue;
    if (rivalry.origins.empty()) {
      os::log_info("{}: a single agent reports for this host again{}", rivalry.host, *before);
    } else {
      os::log_warning(
          "{}: two agents say that they are this host and take turns, from {}: rename one of them; until "
          "then no report returns the node to service{}",
          rivalry.host, rivalry.origins, *before);
    }
  }
  if (const Seconds ahead = engine_.ahead_of(now.wall); !logged.empty() && ahead > tolerated_ahead) {
    if (const auto before = ahead_.admit()) {
      os::log_warning(
          "the log is {} ahead of the clock, so events get the time of the last one: check the clock{}",
          text::format_duration(ahead), *before);
    }
  }
  // Limit these lines: an agent can say hello again and again.
  if (!effects.without_checks.empty()) {
    if (const auto before = gated_.admit()) {
      os::log_warning("{} cannot come up: health-gate is set, and no checks run there{}",
                      effects.without_checks.encode(), *before);
    }
  }
  for (const Error& error : effects.refused) {
    if (const auto before = refusals_.admit()) {
      os::log_warning("refused a change from node agents or the enclosing instance: {}{}", error.what(),
                      *before);
    }
  }
  for (const nodes::AgentNews& news : effects.agents) listener_.on_agent(news);
  if (effects.discovered) listener_.on_discovered(*effects.discovered);
  return std::move(effects.acquired);
}

}  // namespace resourced::daemon::service
