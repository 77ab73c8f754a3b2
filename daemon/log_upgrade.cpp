#include "daemon/log_upgrade.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/event_rows.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon {
namespace {

// The event that a row of version 2 has. Throws Error for a row that is damaged.
nlohmann::json read_event(const std::string& name, const std::string& text) {
  if (find_invalid_utf8(text)) throw Error(EBADMSG, "not UTF-8");
  auto event = nlohmann::json::parse(text, nullptr, false);
  if (event.is_discarded()) throw Error(EBADMSG, "not JSON");
  (void)proto::decode_event(event);
  if (event["name"] != name) throw Error(EBADMSG, "another name");
  return event;
}

// A wide event was not in the index by host: its nodelist, if it has one, is in its text.
Hostlist hosts_of_wide(const nlohmann::json& event) {
  const auto context = event.find("context");
  if (context == event.end() || !context->is_object()) return {};
  const auto nodelist = context->find("nodelist");
  if (nodelist == context->end() || !nodelist->is_string()) return {};
  return Hostlist::parse(nodelist->get_ref<const std::string&>());
}

}  // namespace

Sequence upgrade_log(Database& database) {
  HostIds ids;
  Statement events(database, "SELECT sequence, timestamp, name, text, wide FROM event_2 ORDER BY sequence");
  Statement hosts_of(database, "SELECT host FROM event_host WHERE sequence = ? ORDER BY host");
  EventRows rows(database, ids, 0);
  Sequence last = 0;
  while (events.step()) {
    last = static_cast<Sequence>(events.integer(0));
    const std::string name = events.text(2);
    const std::string text = events.text(3);
    Hostlist hosts;
    bool is_damaged = false;
    try {
      const nlohmann::json event = read_event(name, text);
      if (events.integer(4) != 0) hosts = hosts_of_wide(event);
      hosts_of.bind(1, events.integer(0));
      while (hosts_of.step()) hosts.append(hosts_of.text(0));
    } catch (const Error& error) {
      if (error.errnum() != EBADMSG && error.errnum() != EINVAL && error.errnum() != ERANGE) throw;
      hosts_of.reset();
      hosts = {};
      is_damaged = true;
    }
    rows.write({last, events.real(1), name, text, &hosts, nullptr, is_damaged});
  }
  return last;
}

}  // namespace resourced::daemon
