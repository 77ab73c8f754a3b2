#include "daemon/service/change_log.hpp"

#include <string>
#include <variant>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "core/json/utf8.hpp"
#include "core/module/actor.hpp"
#include "core/module/event.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::service {
namespace {

/// `uid 1000`, `key login1`: as the names of clients in the other lines of the log (peers::Principal).
std::string name_of(const module::Actor& actor) {
  const bool is_user = std::holds_alternative<module::ByUser>(actor);
  return fmt::format("{} {}", is_user ? "uid" : proto::actor_key(actor), proto::actor_name(actor));
}

std::string reason_of(const module::EventBody& body) {
  if (const auto* drain = std::get_if<module::DrainEvent>(&body)) return drain->reason.value_or("");
  if (const auto* undrain = std::get_if<module::UndrainEvent>(&body)) return undrain->reason.value_or("");
  return {};
}

}  // namespace

std::optional<std::uint64_t> ChangeLog::Budget::admit(SteadyTime now) {
  if (lines.left(now, rate) < 1) {
    ++suppressed;
    return std::nullopt;
  }
  lines.take(now, rate, 1);
  return std::exchange(suppressed, 0);
}

void ChangeLog::add(const engine::Record& record, SteadyTime now) {
  if (!write_) return;
  RESOURCED_INVARIANT(record.event.by.has_value());
  const module::Actor& actor = *record.event.by;
  Budget& budget = std::holds_alternative<module::ByHost>(actor) ? of_agents_ : of_others_;
  const auto before = budget.admit(now);
  if (!before) return;
  ChangeLine line;
  line.event = proto::event_name(record.event.body);
  line.hosts = json_text::printable_line(record.hosts.encode());
  line.by = json_text::printable_line(name_of(actor));
  line.reason = json_text::printable_line(reason_of(record.event.body));
  line.text = line.event;
  if (!line.hosts.empty()) line.text += " " + line.hosts;
  line.text += " by " + line.by;
  if (!line.reason.empty()) line.text += ": " + line.reason;
  line.text = json_text::printable_line(line.text);
  if (*before > 0) line.text += fmt::format(" ({} more since the last such line)", *before);
  waiting_.emplace_back(record.sequence, std::move(line));
}

void ChangeLog::on_committed(engine::Sequence last) {
  while (!waiting_.empty() && waiting_.front().first <= last) {
    write_(waiting_.front().second);
    waiting_.pop_front();
  }
}

}  // namespace resourced::daemon::service
