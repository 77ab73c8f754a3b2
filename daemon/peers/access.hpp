// Rights of clients, derived from their credentials by the rules of the site ([access]). The daemon's own
// user and root are always owners. Roles are those of RFC 12, and two of this project's own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/access.hpp"
#include "core/module/actor.hpp"
#include "core/text/host_index.hpp"
#include "daemon/peers/tokens.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::peers {

/// The right that a topic requires of its sender.
enum class Right : std::uint8_t {
  /// No right, as the topic concerns only earlier requests of its sender.
  none,
  read,
  operate,
  schedule,
  report,
  /// For the owner only: the daemon's own user, and root.
  own,
};

/// The role that has this right, for error texts.
[[nodiscard]] std::string_view role_for(Right right) noexcept;

class Rights {
 public:
  constexpr Rights() = default;
  constexpr void add(Right right) noexcept { bits_ |= bit(right); }
  [[nodiscard]] constexpr bool has(Right right) const noexcept { return (bits_ & bit(right)) != 0; }
  /// Whether there is any right besides `none`.
  [[nodiscard]] constexpr bool any() const noexcept { return bits_ != bit(Right::none); }
  bool operator==(const Rights&) const = default;

 private:
  static constexpr std::uint8_t bit(Right right) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(right));
  }
  std::uint8_t bits_ = bit(Right::none);
};

/// The identity of a client.
struct Principal {
  /// For logs and quotas: `uid 1000`, `key login1`, `token prometheus`, `address 10.0.0.1`.
  std::string name;
  /// The credentials that its requests are stamped with (RFC 3, RFC 12). A peer whose uid the kernel does not
  /// report has no userid, and never the role owner.
  std::uint32_t userid = proto::userid_unknown;
  std::uint32_t rolemask = proto::role::none;
  Rights rights;
  /// The actor of its requests where they carry no userid; nothing for a client that has no rights.
  std::optional<module::Actor> actor = std::nullopt;
  /// The hosts for which its agents may speak. Null for all.
  std::shared_ptr<const text::HostIndex> hosts = nullptr;
  /// A client of Flux's own resource module: rights (service::Gate::right_for), form and error texts are
  /// those of that module. The broker vouches for the credentials in each of its requests.
  bool of_instance = false;

  [[nodiscard]] bool is_owner() const noexcept { return (rolemask & proto::role::owner) != 0; }
  /// Throws Error EPERM that names the host and the key if its agents may not speak for the host.
  void check_speaks_for(std::string_view host) const;
};

class Access {
 public:
  /// `owner` is the uid that runs the daemon. `tokens` are those of HTTP clients.
  Access(const config::Access& rules, std::uint32_t owner, Tokens tokens = {});

  [[nodiscard]] Principal judge(const transport::Credentials& credentials) const;
  /// Whether a public key (Z85) is one of the configured ones.
  [[nodiscard]] bool knows_key(std::string_view key) const { return keys_.contains(std::string(key)); }
  /// The same with these rules for users of this machine.
  [[nodiscard]] Access with_rules(std::vector<config::AccessRule> rules) const;
  /// The same for users with these groups beside their primary ones.
  [[nodiscard]] Access with_groups(std::shared_ptr<const config::UserGroups> groups) const;
  [[nodiscard]] const std::shared_ptr<const config::UserGroups>& groups() const noexcept { return groups_; }
  /// How many names in rules the user database lacks.
  [[nodiscard]] std::size_t unknown_accounts() const noexcept;

 private:
  [[nodiscard]] config::Roles token_roles(Principal& principal, const std::string& digest) const;
  [[nodiscard]] config::Roles local_roles(const transport::Credentials& credentials) const;

  std::uint32_t owner_;
  config::Roles local_;
  config::Roles anonymous_;
  std::vector<config::AccessRule> rules_;
  /// Null for none.
  std::shared_ptr<const config::UserGroups> groups_;
  struct Key {
    config::AccessKey rule;
    std::shared_ptr<const text::HostIndex> hosts;
  };
  std::unordered_map<std::string, Key> keys_;
  Tokens tokens_;
};

/// Sets the credentials of a request to those of its connection, as every response carries them. An owner's
/// request that claims a userid keeps what it claims (RFC 12).
void stamp(const Principal& sender, proto::Message& request);

/// The actor of a stamped request, in the events that it causes: its userid, or else the key or address of
/// its sender.
[[nodiscard]] std::optional<module::Actor> actor_of(const Principal& sender, const proto::Message& request);

/// The rights of a stamped request: fewer than those of its sender if an owner sends it for another user.
[[nodiscard]] Rights rights_of_request(const Principal& sender, const proto::Message& request);

}  // namespace resourced::daemon::peers
