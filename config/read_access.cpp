// The [access] and [limits] tables: who may do what, and how much of it.

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/accounts.hpp"
#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "config/tables.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/z85.hpp"

namespace resourced::config {

namespace {

constexpr std::array<std::string_view, 5> role_names{"owner", "admin", "user", "scheduler", "agent"};

constexpr std::int64_t most_requests = 1000000;
constexpr std::int64_t most_per_second = 1000000000;
constexpr std::int64_t most_connections = 1000000;
// Upper bound of handshake-timeout in seconds: libzmq takes an int of milliseconds, and an hour is far more
// than a handshake needs.
constexpr double longest_handshake = 3600;

Roles read_roles(const TableReader& table, std::string_view key) {
  Roles roles;
  for (const std::string& name : table.strings(key)) {
    try {
      roles.push_back(parse_role(name));
    } catch (const Error& error) {
      table.fail(key, error.what());
    }
  }
  return roles;
}

Roles required_roles(const TableReader& table) {
  if (!table.has("roles")) table.fail("roles", "is missing");
  return read_roles(table, "roles");
}

/// Names, and numbers with or without quotes, as text.
std::vector<std::string> account_names(const TableReader& table, std::string_view key) {
  std::vector<std::string> names;
  const Array* elements = table.array(key);
  if (!elements) return names;
  for (const Node& element : *elements) {
    if (const auto* name = std::get_if<std::string>(&element.value)) {
      names.push_back(*name);
    } else if (const auto* number = std::get_if<std::int64_t>(&element.value); number && *number >= 0) {
      names.push_back(fmt::format("{}", *number));
    } else {
      table.fail(key, "must hold names and numbers");
    }
  }
  return names;
}

template <class Find>
void for_accounts(const TableReader& table, std::string_view key, const Find& find) {
  for (const std::string& name : account_names(table, key)) {
    try {
      find(name);
    } catch (const Error& error) {
      table.fail(key, error.what());
    }
  }
}

AccessRule read_rule(const TableReader& table) {
  if (!table.has("users") && !table.has("groups")) table.fail("", "must have users or groups");
  AccessRule rule;
  for_accounts(table, "users", [&](const std::string& name) { rule.users.push_back(find_user(name)); });
  for_accounts(table, "groups", [&](const std::string& name) {
    const GroupAccount group = find_group(name);
    rule.groups.push_back(group.id);
    rule.users.insert(rule.users.end(), group.members.begin(), group.members.end());
  });
  rule.roles = required_roles(table);
  return rule;
}

AccessKey read_key(const TableReader& table) {
  AccessKey key;
  for (const std::string_view needed : {"name", "public-key"}) {
    if (!table.has(needed)) table.fail(needed, "is missing");
  }
  key.name = table.filled_string("name");
  key.public_key = table.filled_string("public-key");
  if (!is_z85_key(key.public_key))
    table.fail("public-key", fmt::format("{} is not a key of {} characters (Z85)",
                                         resourced::quoted(key.public_key), z85_key_size));
  key.roles = required_roles(table);
  return key;
}

std::size_t read_count(const TableReader& table, std::string_view key, std::int64_t most,
                       std::size_t otherwise) {
  const auto value = table.integer(key, 1, most);
  return value ? static_cast<std::size_t>(*value) : otherwise;
}

}  // namespace

Role parse_role(std::string_view text) {
  const auto* const found = std::ranges::find(role_names, text);
  if (found == role_names.end())
    throw Error(EINVAL,
                fmt::format("{} is not a role: {}", resourced::quoted(text), fmt::join(role_names, ", ")));
  return static_cast<Role>(found - role_names.begin());
}

std::string_view to_text(Role role) noexcept { return role_names[static_cast<std::size_t>(role)]; }

Access read_access(const Document& document) {
  Access result;
  const Node* node = find_member(*document.root().table(), "access");
  if (!node) return result;
  const KeyPath path{nullptr, "access"};
  const TableReader access(document, *node, path, {"local", "anonymous", "rule", "key"}, flux_access_keys());
  if (access.has("local")) result.local = read_roles(access, "local");
  result.anonymous = read_roles(access, "anonymous");
  if (const Array* rules = access.array("rule")) {
    for (std::size_t i = 0; i < rules->size(); ++i) {
      const KeyPath place{&path, "rule", i};
      result.rules.push_back(
          read_rule(TableReader(document, (*rules)[i], place, {"users", "groups", "roles"})));
    }
  }
  const Array* keys = access.array("key");
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; keys && i < keys->size(); ++i) {
    const KeyPath place{&path, "key", i};
    const TableReader table(document, (*keys)[i], place, {"name", "public-key", "roles"});
    const AccessKey& key = result.keys.emplace_back(read_key(table));
    if (!seen.insert("name " + key.name).second)
      table.fail("name", fmt::format("{} names an earlier key too", resourced::quoted(key.name)));
    if (!seen.insert("key " + key.public_key).second) table.fail("public-key", "is that of an earlier key");
  }
  return result;
}

Limits read_limits(const Document& document) {
  Limits result;
  const Node* node = find_member(*document.root().table(), "limits");
  if (!node) return result;
  const KeyPath path{nullptr, "limits"};
  const TableReader limits(document, *node, path,
                           {"outstanding-requests", "requests-per-second", "connections-per-uid",
                            "journal-consumers", "handshake-timeout"});
  result.outstanding_requests =
      read_count(limits, "outstanding-requests", most_requests, result.outstanding_requests);
  result.requests_per_second =
      read_count(limits, "requests-per-second", most_per_second, result.requests_per_second);
  result.connections_per_uid =
      read_count(limits, "connections-per-uid", most_connections, result.connections_per_uid);
  result.journal_consumers = read_count(limits, "journal-consumers", most_requests, result.journal_consumers);
  if (const auto seconds = limits.duration("handshake-timeout")) {
    if (*seconds < 0.001 || *seconds > longest_handshake)
      limits.fail("handshake-timeout",
                  fmt::format("{}s is not from 1ms to {}s", *seconds, longest_handshake));
    result.handshake_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  }
  return result;
}

}  // namespace resourced::config
