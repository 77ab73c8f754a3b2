// The lists of [access]: roles, rules and keys.

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "config/accounts.hpp"
#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/z85.hpp"

namespace resourced::config {

namespace {

constexpr std::array<std::string_view, 5> role_names{"owner", "admin", "user", "scheduler", "agent"};

Roles roles_of(const TableReader& table, std::string_view key) {
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
  return roles_of(table, "roles");
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

}  // namespace

Role parse_role(std::string_view text) {
  const auto* const found = std::ranges::find(role_names, text);
  if (found == role_names.end())
    throw Error(EINVAL,
                fmt::format("{} is not a role: {}", resourced::quoted(text), fmt::join(role_names, ", ")));
  return static_cast<Role>(found - role_names.begin());
}

std::string_view to_text(Role role) noexcept { return role_names[static_cast<std::size_t>(role)]; }

Roles read_roles(const TableReader& access, const Setting& setting) { return roles_of(access, setting.key); }

nlohmann::json tell_roles(const Roles& roles) {
  nlohmann::json names = nlohmann::json::array();
  for (const Role role : roles) names.push_back(to_text(role));
  return names;
}

std::vector<AccessRule> read_rules(const TableReader& access, const Setting& setting) {
  const Array& elements = *access.array(setting.key);
  std::vector<AccessRule> rules;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const KeyPath place{&access.key_path(), setting.key, i};
    rules.push_back(
        read_rule(TableReader(access.document(), elements[i], place, settings_of("access.rule"))));
  }
  return rules;
}

std::vector<AccessKey> read_keys(const TableReader& access, const Setting& setting) {
  const Array& elements = *access.array(setting.key);
  std::vector<AccessKey> keys;
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const KeyPath place{&access.key_path(), setting.key, i};
    const TableReader table(access.document(), elements[i], place, settings_of("access.key"));
    const AccessKey& key = keys.emplace_back(read_key(table));
    if (!seen.insert("name " + key.name).second)
      table.fail("name", fmt::format("{} is the name of an earlier key", resourced::quoted(key.name)));
    if (!seen.insert("key " + key.public_key).second)
      table.fail("public-key", "is the public key of an earlier key");
  }
  return keys;
}

}  // namespace resourced::config
