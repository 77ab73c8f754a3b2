#include "daemon/service/change_log.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "core/json/utf8.hpp"
#include "core/module/actor.hpp"
#include "core/module/event.hpp"
#include "core/text/duration.hpp"
#include "os/user_name.hpp"
#include "proto/actor_json.hpp"
#include "proto/drain_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::service {
namespace {

std::string reason_of(const module::EventBody& body) {
  if (const auto* drain = std::get_if<module::DrainEvent>(&body)) return drain->reason.value_or("");
  if (const auto* undrain = std::get_if<module::UndrainEvent>(&body)) return undrain->reason.value_or("");
  if (const auto* schedule = std::get_if<module::ScheduleEvent>(&body)) return schedule->reason.value_or("");
  return {};
}

bool is_seen(const module::EventBody& body) {
  return std::holds_alternative<module::OnlineEvent>(body) ||
         std::holds_alternative<module::OfflineEvent>(body) ||
         std::holds_alternative<module::TorpidEvent>(body) ||
         std::holds_alternative<module::LivelyEvent>(body);
}

/// Returns whether the daemon causes such events by itself while it runs, not only at its start.
bool is_of_daemon(const module::EventBody& body) {
  return std::holds_alternative<module::DrainEvent>(body) ||
         std::holds_alternative<module::UndrainEvent>(body) || module::updates_inventory(body);
}

/// Returns ` from 2026-01-01T00:00:00Z until ...`, with the terms that are set but the reason.
std::string terms_of(const module::EventBody& body) {
  std::string text;
  const auto add = [&text](std::string_view word, const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, WallTime>) {
      text += fmt::format(" {} {}", word, text::format_utc(value));
    } else {
      text += fmt::format(" {} {}", word, json_text::printable_line(value));
    }
  };
  if (const auto* schedule = std::get_if<module::ScheduleEvent>(&body)) {
    add("from", schedule->from);
    proto::for_each_term(*schedule, add);
  }
  if (const auto* drain = std::get_if<module::DrainEvent>(&body)) proto::for_each_term(*drain, add);
  if (const auto* cancel = std::get_if<module::CancelEvent>(&body); cancel != nullptr && cancel->from)
    add("from", *cancel->from);
  return text;
}

}  // namespace

std::string name_of(const module::Actor& actor) {
  const bool is_user = std::holds_alternative<module::ByUser>(actor);
  return json_text::printable_line(
      fmt::format("{} {}", is_user ? "uid" : proto::actor_key(actor), proto::actor_name(actor)));
}

std::string full_name_of(const module::Actor& actor) {
  const auto* const user = std::get_if<module::ByUser>(&actor);
  const auto name = user == nullptr ? std::nullopt : os::user_name(user->id);
  return name ? json_text::printable_line(fmt::format("{} (uid {})", *name, user->id)) : name_of(actor);
}

std::string text_of(const ChangeLine& line) {
  std::string text = line.what;
  if (line.has_author) text += " by " + (line.by ? full_name_of(*line.by) : "the daemon");
  if (!line.reason.empty()) text += ": " + line.reason;
  text = json_text::printable_line(text);
  text += line.left_out;
  return text;
}

void ChangeLog::add(const engine::Record& record, SteadyTime now) {
  if (!write_) return;
  if (is_seen(record.event.body)) return see(proto::event_name(record.event.body), record);
  const std::optional<module::Actor>& actor = record.event.by;
  if (!actor && !is_of_daemon(record.event.body)) return;
  peers::RateLimit& lines =
      !actor || std::holds_alternative<module::ByHost>(*actor) ? of_agents_ : of_others_;
  const auto before = lines.admit(now);
  if (!before) return;
  ChangeLine line;
  line.event = proto::event_name(record.event.body);
  line.hosts = json_text::printable_line(record.hosts.encode());
  line.by = actor;
  line.reason = json_text::printable_line(reason_of(record.event.body));
  line.what = line.event;
  if (!line.hosts.empty()) line.what += " " + line.hosts;
  line.what += terms_of(record.event.body);
  line.left_out = *before;
  write_(line);
}

void ChangeLog::see(std::string_view event, const engine::Record& record) {
  if (seen_.empty()) tell_seen_later();
  auto found = std::ranges::find(seen_, event, &Seen::event);
  if (found == seen_.end()) found = seen_.insert(seen_.end(), {std::string(event), {}});
  found->hosts.append(record.hosts);
}

void ChangeLog::tell_seen_later() {
  constexpr Seconds together{1};
  deferral_.later(together, [this] { tell_seen(); });
}

void ChangeLog::tell_seen() {
  for (Seen& seen : std::exchange(seen_, {})) {
    seen.hosts.unique();
    ChangeLine line;
    line.event = seen.event;
    line.hosts = json_text::printable_line(seen.hosts.encode());
    line.what = fmt::format("{} node{} {}: {}", seen.hosts.size(), seen.hosts.size() == 1 ? "" : "s",
                            seen.event, line.hosts);
    line.has_author = false;
    write_(line);
  }
}

}  // namespace resourced::daemon::service
