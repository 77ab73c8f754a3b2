// The steps of an upgrade that SQL cannot express (store_schema.hpp).

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/imported_state.hpp"
#include "daemon/log/store_schema.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::log {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

nlohmann::json read_row(const std::string& text) {
  auto read = read_json(text, proto::max_json_depth, json_text::JsonManners::lenient);
  if (auto* entry = std::get_if<nlohmann::json>(&read)) return std::move(*entry);
  throw Error(EINVAL, "not JSON");
}

std::optional<module::Event> read_event(const std::string& text) {
  return proto::decode_event(read_row(text));
}

bool some_host_repeats(Database& database) {
  Statement last(database, "SELECT text FROM event WHERE name = 'restart' ORDER BY sequence DESC LIMIT 1");
  if (!last.step()) return false;
  const std::string text = last.text(0);
  last.reset();
  const auto event = read_event(text);
  const auto* restart = event ? std::get_if<module::RestartEvent>(&event->body) : nullptr;
  if (restart == nullptr || restart->ranks.count() != restart->nodelist.size()) return false;
  return ResourceSet({{restart->ranks, IdSet{0}, {}}}, restart->nodelist).hosts_repeat();
}

bool is_trimmed(Database& database) {
  Statement trimmed(database, "SELECT 1 FROM trimmed");
  const bool found = trimmed.step();
  trimmed.reset();
  return found;
}

// The state at the end of the log. Nothing if no host has several ranks, so that no target is ambiguous, or
// if the beginning of the log was dropped or a line is damaged.
std::optional<Record> replay(Database& database) {
  try {
    if (!some_host_repeats(database) || is_trimmed(database)) return std::nullopt;
    ImportedState state(WallTime{});
    Statement events(database, "SELECT text, name FROM event ORDER BY sequence");
    while (events.step()) {
      if (const auto event = read_event(events.text(0))) {
        (void)state.apply(*event);
      } else if (events.text(1) == proto::define_name) {
        // Daemons of these versions load no R.
        state.define(std::nullopt);
      }
    }
    Record present;
    state.finish(present);
    return present;
  } catch (const Error& error) {
    if (error.errnum() != EINVAL) throw;
    return std::nullopt;
  }
}

void write(Database& database, const Record& present) {
  database.execute("DELETE FROM drain; DELETE FROM property; DELETE FROM shrunk");
  Statement drain(database, "INSERT INTO drain(host, ordinal, timestamp, reason) VALUES (?, ?, ?, ?)");
  for (const TableChanges::Drained& drained : present.changes.drained) {
    drained.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
      drain.bind(1, host).bind(2, std::int64_t{ordinal}).bind(3, drained.timestamp).bind(4, drained.reason);
      drain.run();
    });
  }
  Statement put(database, "INSERT INTO property(name, host, ordinal, present) VALUES (?, ?, ?, ?)");
  for (const TableChanges::Property& property : present.changes.properties) {
    const bool added = property.difference == module::PropertyState::Difference::added;
    property.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
      put.bind(1, std::string_view(property.name)).bind(2, host);
      put.bind(3, std::int64_t{ordinal}).bind(4, std::int64_t{added}).run();
    });
  }
  Statement shrunk(database, "INSERT INTO shrunk(host, ordinal) VALUES (?, ?)");
  present.changes.shrunk.for_each([&](std::string_view host, std::uint32_t ordinal) {
    shrunk.bind(1, host).bind(2, std::int64_t{ordinal}).run();
  });
}

// Removes the run-time changes from the stored inventory: they are in tables of their own.
void restore_inventory(Database& database) {
  Statement stored(database, "SELECT text FROM inventory");
  if (!stored.step()) return;
  ResourceSet inventory = ResourceSet::parse(stored.text(0));
  stored.reset();
  Statement properties(database, "SELECT name, host, present FROM property");
  while (properties.step()) {
    const auto rank = inventory.rank_of(properties.text(1));
    if (!rank) continue;
    if (properties.integer(2) != 0) {
      inventory.remove_property(properties.text(0), IdSet{*rank});
    } else {
      inventory.add_property(properties.text(0), IdSet{*rank});
    }
  }
  Statement expiration(database, "SELECT value, configured FROM expiration");
  if (expiration.step() && expiration.time(0) == inventory.expiration()) {
    inventory.set_expiration(expiration.time(1));
  }
  expiration.reset();
  Statement put(database, "UPDATE inventory SET text = ?");
  const std::string text = inventory.encode();
  put.bind(1, std::string_view(text)).run();
}

// The event that a row of version 2 has. Throws Error for a row that is damaged.
nlohmann::json whole_event(const std::string& name, const std::string& text) {
  auto event = read_row(text);
  (void)proto::decode_event(event);
  if (event["name"] != name) throw Error(EBADMSG, "its name differs from that of its row");
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

void name_targets(Database& database) {
  if (const auto present = replay(database)) write(database, *present);
  try {
    restore_inventory(database);
  } catch (const Error& error) {
    if (error.errnum() != EINVAL) throw;
    throw damaged_store(database.path(), fmt::format("inventory: {}", error.what()));
  }
}

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
      const nlohmann::json event = whole_event(name, text);
      if (events.integer(4) != 0) hosts = hosts_of_wide(event);
      hosts_of.bind(1, events.integer(0));
      while (hosts_of.step()) hosts.append(hosts_of.text(0));
    } catch (const Error& error) {
      if (error.errnum() != EBADMSG && error.errnum() != EINVAL && error.errnum() != ERANGE) throw;
      hosts_of.reset();
      hosts = {};
      is_damaged = true;
    }
    rows.write({last, events.time(1), name, text, &hosts, nullptr, is_damaged});
  }
  return last;
}

}  // namespace resourced::daemon::log
