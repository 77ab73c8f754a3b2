#include "daemon/log/load_state.hpp"

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {
namespace {

std::vector<std::uint32_t> parse_ordinals(const std::string& text) {
  std::vector<std::uint32_t> ordinals;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::uint32_t ordinal = 0;
    const auto [next, failure] = std::from_chars(at, end, ordinal);
    if (failure != std::errc()) throw Error(EBADMSG, "an ordinal is no number");
    ordinals.push_back(ordinal);
    if (next == end) return ordinals;
    at = next + 1;
  }
}

std::optional<module::Actor> parse_actor(const std::string& text) {
  constexpr std::size_t depth = 2;
  const auto read = json_text::read_json(text, depth, json_text::JsonManners::strict);
  const auto* value = std::get_if<nlohmann::json>(&read);
  if (value == nullptr) throw Error(EBADMSG, "not JSON");
  return proto::read_actor(*value);
}

std::vector<module::RecordedAllocation> load_allocations(Database& database) {
  std::vector<module::RecordedAllocation> allocations;
  Statement rows(database, "SELECT id, resources, ordinals, expiration, note, part FROM allocation");
  while (rows.step()) {
    module::RecordedAllocation allocation{.id = rows.text(0), .resources = {}};
    try {
      allocation.resources = rset::ResourceSet::parse(rows.text(1));
      if (const auto ordinals = rows.optional_text(2)) {
        allocation.ordinals = parse_ordinals(*ordinals);
        if (allocation.ordinals.size() != allocation.resources.ranks().count())
          throw Error(EBADMSG, "one ordinal for each target is wanted");
      }
    } catch (const Error& error) {
      throw damaged_store(database.path(),
                          fmt::format("table allocation: {}: {}", allocation.id, error.what()));
    }
    if (!rows.is_null(3)) allocation.expiration = rows.time(3);
    allocation.note = rows.optional_text(4);
    allocation.partition = rows.text(5);
    allocations.push_back(std::move(allocation));
  }
  return allocations;
}

module::TargetName target(const Statement& row, int column) {
  return {row.text(column), static_cast<std::uint32_t>(row.integer(column + 1))};
}

std::vector<module::RecordedDrain> load_drains(Database& database, const std::string& table) {
  std::vector<module::RecordedDrain> drains;
  const std::string query = "SELECT host, ordinal, timestamp, reason, actor, until FROM " + table;
  Statement rows(database, query.c_str());
  while (rows.step()) {
    module::RecordedDrain drain{target(rows, 0), rows.time(2), rows.optional_text(3)};
    try {
      if (const auto actor = rows.optional_text(4)) drain.by = parse_actor(*actor);
    } catch (const Error& error) {
      throw damaged_store(database.path(),
                          fmt::format("table {}: {}: {}", table, drain.target.host, error.what()));
    }
    if (!rows.is_null(5)) drain.until = rows.time(5);
    drains.push_back(std::move(drain));
  }
  return drains;
}

}  // namespace

module::RecordedState load_state(Database& database) {
  module::RecordedState state;
  state.drains = load_drains(database, "drain");
  state.scheduled = load_drains(database, "scheduled_drain");
  Statement properties(database, "SELECT name, host, ordinal, present FROM property");
  while (properties.step()) {
    state.properties.push_back({properties.text(0), target(properties, 1), properties.integer(3) != 0});
  }
  Statement shrunk(database, "SELECT host, ordinal FROM shrunk");
  while (shrunk.step()) state.shrunk.push_back(target(shrunk, 0));
  Statement expiration(database, "SELECT value, configured, timestamp FROM expiration");
  if (expiration.step()) state.expiration = {expiration.time(0), expiration.time(1), expiration.time(2)};
  Statement brokers(database, "SELECT hosts FROM broker");
  Statement inventory(database, "SELECT method, text, replaced FROM inventory");
  if (inventory.step()) {
    const std::string method = inventory.text(0);
    const auto known = proto::parse_method_name(method);
    if (!known)
      throw damaged_store(database.path(), fmt::format("table inventory: unknown method {}", method));
    try {
      state.inventory = {
          *known, std::make_shared<const rset::ResourceSet>(rset::ResourceSet::parse(inventory.text(1))),
          inventory.optional_text(2)};
    } catch (const Error& error) {
      throw damaged_store(database.path(), fmt::format("table inventory: {}", error.what()));
    }
  }
  try {
    if (brokers.step()) state.brokers = text::Hostlist::parse(brokers.text(0));
  } catch (const Error& error) {
    throw damaged_store(database.path(), fmt::format("table broker: {}", error.what()));
  }
  state.allocations = load_allocations(database);
  return state;
}

}  // namespace resourced::daemon::log
