// The access rules of the configuration ([access]), with the names of users and groups looked up. The daemon
// decides which topics a role allows (daemon/peers/access.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/hostlist.hpp"

namespace resourced::config {

/// The roles of a client, which add up. Owner, admin and user are those of RFC 12, a scheduler may
/// acquire, an agent speaks for its node.
enum class Role : std::uint8_t { owner, admin, user, scheduler, agent };

using Roles = std::vector<Role>;

/// One [[access.rule]]: the roles of some users of this machine.
struct AccessRule {
  std::vector<std::uint32_t> users;  ///< uids: of `users`, and of the members of `groups`
  std::vector<std::uint32_t>
      groups;  ///< gids: those whose primary group it is, or who are in it by UserGroups
  Roles roles;
  std::vector<std::string> user_names = {};   ///< as the configuration has them
  std::vector<std::string> group_names = {};  ///< likewise
  /// What the user database lacks, as `user "x"` and `group "y"`. The rule applies to nobody of these names.
  std::vector<std::string> unknown = {};
  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

/// One [[access.key]]: the roles of the owner of a CURVE key.
struct AccessKey {
  std::string name;        ///< unique
  std::string public_key;  ///< Z85; unique
  Roles roles;
  /// The hosts for which its agents may speak; nothing for all.
  std::optional<text::Hostlist> hosts = std::nullopt;
  friend bool operator==(const AccessKey&, const AccessKey&) = default;
};

/// [access].
struct Access {
  Roles local{Role::user};  ///< users of this machine that no rule names
  Roles anonymous;          ///< clients over TCP without a key
  std::vector<AccessRule> rules;
  std::vector<AccessKey> keys;
  friend bool operator==(const Access&, const Access&) = default;
};

/// `owner`, `admin`, `user`, `scheduler`, `agent`. Throws Error EINVAL that lists them.
[[nodiscard]] Role parse_role(std::string_view text);
[[nodiscard]] std::string_view to_text(Role role) noexcept;

// Users and groups of this machine by name or number, as its user database has them now.

/// Throws Error EINVAL that names the user, or the errno of the failed look-up.
[[nodiscard]] std::uint32_t find_user(const std::string& name);

struct GroupAccount {
  std::uint32_t id = 0;
  /// Uids of the members that the database lists; not those whose primary group it is.
  std::vector<std::uint32_t> members;
};
/// Throws Error as find_user() does. A listed member that does not exist is passed over.
[[nodiscard]] GroupAccount find_group(const std::string& name);

/// The gids of all groups of each user (uid).
using UserGroups = std::map<std::uint32_t, std::vector<std::uint32_t>>;

/// The gids of all groups of a user, also of those whose entries do not list the user, as groups in groups of
/// a directory do; empty for an unknown user, or if the database does not answer. May take as long as a
/// server of accounts does.
[[nodiscard]] std::vector<std::uint32_t> groups_of_user(std::uint32_t uid);

/// The rule with its names as the user database has them now; as it was if the database does not answer. May
/// take as long as a server of accounts does.
[[nodiscard]] AccessRule looked_up(const AccessRule& rule);

}  // namespace resourced::config
