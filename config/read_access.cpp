// Reads the lists of [access]: roles, rules and keys.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <nlohmann/json.hpp>
#include <pwd.h>

#include "config/access.hpp"
#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"
#include "core/text/z85.hpp"

namespace resourced::config {
namespace {

constexpr std::array<std::string_view, 5> role_names{"owner", "admin", "user", "scheduler", "agent"};

Roles roles_of(const TableReader& table, std::string_view key) {
  Roles roles;
  for (const std::string& name : table.strings(key))
    roles.push_back(table.checked(key, [&] { return parse_role(name); }));
  return roles;
}

Roles required_roles(const TableReader& table) {
  if (!table.has("roles")) table.fail("roles", "is missing");
  return roles_of(table, "roles");
}

/// Returns names, and numbers with or without quotes, as text.
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

std::string described(std::string_view kind, const std::string& name) {
  return fmt::format("{} {}", kind, text::quoted(name));
}

AccessRule read_rule(const TableReader& table) {
  if (!table.has("users") && !table.has("groups")) table.fail("", "must have users or groups");
  AccessRule rule;
  rule.user_names = account_names(table, "users");
  rule.group_names = account_names(table, "groups");
  for (const std::string& name : rule.user_names) rule.unknown.push_back(described("user", name));
  for (const std::string& name : rule.group_names) rule.unknown.push_back(described("group", name));
  rule.roles = required_roles(table);
  return looked_up(rule);
}

AccessKey read_key(const TableReader& table) {
  AccessKey key;
  for (const std::string_view needed : {"name", "public-key"}) {
    if (!table.has(needed)) table.fail(needed, "is missing");
  }
  key.name = table.filled_string("name");
  key.public_key = table.filled_string("public-key");
  if (!text::is_z85_key(key.public_key))
    table.fail("public-key", fmt::format("{} is not a key of {} characters (Z85)",
                                         text::quoted(key.public_key), text::z85_key_size));
  key.roles = required_roles(table);
  if (table.has("hosts")) key.hosts = table.hostlist("hosts");
  return key;
}

}  // namespace

Role parse_role(std::string_view text) {
  const auto* const found = std::ranges::find(role_names, text);
  if (found == role_names.end())
    throw Error(EINVAL, fmt::format("{} is not a role: {}", text::quoted(text), fmt::join(role_names, ", ")));
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
  std::vector<AccessRule> rules;
  access.each_table(setting.key, "access.rule",
                    [&](const TableReader& table) { rules.push_back(read_rule(table)); });
  return rules;
}

std::vector<AccessKey> read_keys(const TableReader& access, const Setting& setting) {
  std::vector<AccessKey> keys;
  std::set<std::string, std::less<>> seen;
  access.each_table(setting.key, "access.key", [&](const TableReader& table) {
    const AccessKey& key = keys.emplace_back(read_key(table));
    if (!seen.insert("name " + key.name).second)
      table.fail("name", fmt::format("{} is the name of an earlier key", text::quoted(key.name)));
    if (!seen.insert("key " + key.public_key).second)
      table.fail("public-key", "is the public key of an earlier key");
  });
  return keys;
}

namespace {

constexpr std::size_t first_buffer = 4096;
// Maximum size of an entry of the user database: enough for a group of very many members.
constexpr std::size_t largest_buffer = std::size_t{16} << 20;

std::optional<std::uint32_t> number(const std::string& text) {
  const auto value = text::whole_number<std::uint32_t>(text);
  // The largest number stands for "none" in system calls.
  return value != std::numeric_limits<std::uint32_t>::max() ? value : std::nullopt;
}

// Calls a re-entrant function of the C library, with a buffer that grows until the entry fits.
template <class Entry, class Ask>
bool look_up(const Ask& ask, Entry& entry, std::vector<char>& buffer, const std::string& what) {
  Entry* found = nullptr;
  for (buffer.resize(first_buffer);; buffer.resize(buffer.size() * 4)) {
    const int failure = ask(&entry, buffer.data(), buffer.size(), &found);
    if (failure == ERANGE && buffer.size() < largest_buffer) continue;
    // Some user databases report an unknown name by one of these errors.
    const bool unknown = failure == ENOENT || failure == ESRCH || failure == EBADF || failure == EPERM;
    if (failure != 0 && !unknown)
      throw Error(failure, fmt::format("cannot look up {}: {}", what, std::strerror(failure)));
    return found != nullptr;
  }
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  passwd entry{};
  std::vector<char> buffer;
  const auto ask = [&](passwd* place, char* room, std::size_t size, passwd** found) {
    return getpwnam_r(name.c_str(), place, room, size, found);
  };
  if (!look_up(ask, entry, buffer, fmt::format("user {}", text::quoted(name)))) return std::nullopt;
  return entry.pw_uid;
}

}  // namespace

std::uint32_t find_user(const std::string& name) {
  if (const auto id = number(name)) return *id;
  if (const auto id = user_id(name)) return *id;
  throw Error(EINVAL, fmt::format("unknown user: {}", text::quoted(name)));
}

std::optional<std::vector<std::uint32_t>> groups_of_user(std::uint32_t uid) {
  passwd entry{};
  std::vector<char> buffer;
  const auto ask = [uid](passwd* place, char* room, std::size_t size, passwd** found) {
    return getpwuid_r(uid, place, room, size, found);
  };
  try {
    if (!look_up(ask, entry, buffer, fmt::format("uid {}", uid))) return std::vector<std::uint32_t>();
  } catch (const Error&) {
    return std::nullopt;
  }
  // Maximum number of groups of a process in Linux.
  constexpr int most = 65536;
  constexpr int usual = 64;
  std::vector<gid_t> groups(usual);
  for (int count = usual;; count = std::min(count, most)) {
    groups.resize(static_cast<std::size_t>(count));
    if (getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) >= 0) {
      groups.resize(static_cast<std::size_t>(count));
      return std::vector<std::uint32_t>(groups.begin(), groups.end());
    }
    if (groups.size() >= most) return std::vector<std::uint32_t>(groups.begin(), groups.end());
  }
}

AccessRule looked_up(const AccessRule& rule) {
  AccessRule now{{}, {}, rule.roles, rule.user_names, rule.group_names};
  const auto look_up_all = [&](std::string_view kind, const std::vector<std::string>& names,
                               const auto& take) {
    for (const std::string& name : names) {
      try {
        take(name);
      } catch (const Error& error) {
        if (error.errnum() != EINVAL) throw;
        now.unknown.push_back(described(kind, name));
      }
    }
  };
  try {
    look_up_all("user", rule.user_names,
                [&](const std::string& name) { now.users.push_back(find_user(name)); });
    look_up_all("group", rule.group_names, [&](const std::string& name) {
      const GroupAccount group = find_group(name);
      now.groups.push_back(group.id);
      now.users.insert(now.users.end(), group.members.begin(), group.members.end());
    });
  } catch (const Error&) {
    return rule;
  }
  return now;
}

GroupAccount find_group(const std::string& name) {
  group entry{};
  std::vector<char> buffer;
  const auto id = number(name);
  const auto ask = [&](group* place, char* room, std::size_t size, group** found) {
    return id ? getgrgid_r(*id, place, room, size, found)
              : getgrnam_r(name.c_str(), place, room, size, found);
  };
  GroupAccount account;
  if (!look_up(ask, entry, buffer, fmt::format("group {}", text::quoted(name)))) {
    // A numeric gid is valid without an entry in the database.
    if (!id) throw Error(EINVAL, fmt::format("unknown group: {}", text::quoted(name)));
    account.id = *id;
    return account;
  }
  account.id = entry.gr_gid;
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (const auto uid = user_id(*member)) account.members.push_back(*uid);
  }
  return account;
}

}  // namespace resourced::config
