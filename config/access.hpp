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

/// Roles of a client; a client may have several. Owner, admin and user are those of RFC 12, a scheduler may
/// acquire, an agent may report its node.
enum class Role : std::uint8_t { owner, admin, user, scheduler, agent };

using Roles = std::vector<Role>;

/// One [[access.rule]]: the roles of some users of this machine.
struct AccessRule {
  std::vector<std::uint32_t> users;  ///< uids of `users`, and of the members of `groups`
  std::vector<std::uint32_t>
      groups;  ///< gids, for users whose primary group it is, or who are in it by UserGroups
  Roles roles;
  std::vector<std::string> user_names = {};   ///< `users` as configured
  std::vector<std::string> group_names = {};  ///< `groups` as configured
  /// Names that the user database lacks, as `user "x"` and `group "y"`. The rule does not apply to them.
  std::vector<std::string> unknown = {};
  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

/// One [[access.key]]: the roles of the owner of a CURVE key.
struct AccessKey {
  std::string name;        ///< unique
  std::string public_key;  ///< Z85; unique
  Roles roles;
  /// Hosts to which the key is bound: its agents may report only these, and its requests may change no other
  /// target. Unset for all hosts.
  std::optional<text::Hostlist> hosts = std::nullopt;
  friend bool operator==(const AccessKey&, const AccessKey&) = default;
};

/// Values of [access].
struct Access {
  Roles local{Role::user};  ///< users of this machine that no rule names
  Roles anonymous;          ///< clients over TCP without a key
  std::vector<AccessRule> rules;
  std::vector<AccessKey> keys;
  friend bool operator==(const Access&, const Access&) = default;
};

/// Reads a role: `owner`, `admin`, `user`, `scheduler`, `agent`. Throws Error EINVAL that lists them.
[[nodiscard]] Role parse_role(std::string_view text);
[[nodiscard]] std::string_view to_text(Role role) noexcept;

// Look-ups of users and groups of this machine by name or number in its user database.

/// Returns the uid of a user. Throws Error EINVAL that names the user, or the errno of the failed look-up.
[[nodiscard]] std::uint32_t find_user(const std::string& name);

struct GroupAccount {
  std::uint32_t id = 0;
  /// Uids of the members that the database lists, without those whose primary group it is.
  std::vector<std::uint32_t> members;
};
/// Returns a group. Throws Error as find_user() does. Ignores a listed member that does not exist.
[[nodiscard]] GroupAccount find_group(const std::string& name);

/// The gids of all groups of each user, by uid.
using UserGroups = std::map<std::uint32_t, std::vector<std::uint32_t>>;

/// Returns the gids of all groups of a user, also of those whose entries do not list the user, such as groups
/// in groups of a directory; empty for an unknown user, nothing if the database does not answer. May take as
/// long as a directory service takes.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> groups_of_user(std::uint32_t uid);

/// Returns the rule with the present ids of its names, or the unchanged rule if the database does not answer.
/// May take as long as a directory service takes.
[[nodiscard]] AccessRule looked_up(const AccessRule& rule);

}  // namespace resourced::config
