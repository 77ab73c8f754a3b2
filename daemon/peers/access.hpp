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

/// Returns the role that has this right, for error texts.
[[nodiscard]] std::string_view role_for(Right right) noexcept;

class Rights {
 public:
  constexpr Rights() = default;
  constexpr void add(Right right) noexcept { bits_ |= bit(right); }
  [[nodiscard]] constexpr bool has(Right right) const noexcept { return (bits_ & bit(right)) != 0; }
  /// Whether there is any right except `none`.
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
  /// Name for logs and quotas: `uid 1000`, `key login1`, `token prometheus`, `address 10.0.0.1`.
  std::string name;
  /// IP address of the client; empty on a Unix socket.
  std::string address = {};
  /// Credentials with which its requests are stamped (RFC 3, RFC 12). A peer whose uid the kernel does not
  /// report has no userid, and never the role owner.
  std::uint32_t userid = proto::userid_unknown;
  std::uint32_t rolemask = proto::role::none;
  Rights rights;
  /// The actor of its requests if they have no userid; unset for a client without rights.
  std::optional<module::Actor> actor = std::nullopt;
  /// Hosts to which its key is bound: its agents may report only these, and its requests may change no other
  /// target. Null for all.
  std::shared_ptr<const text::HostIndex> hosts = nullptr;
  /// Whether the client belongs to a Flux instance: rights (service::Gate::right_for), form and error texts
  /// are those of Flux's own resource module. The broker vouches for the credentials in each of its requests.
  bool of_instance = false;

  [[nodiscard]] bool is_owner() const noexcept { return (rolemask & proto::role::owner) != 0; }
  /// Returns the origin for people: `ADDRESS (NAME)`, or just its name for a client of this machine.
  [[nodiscard]] std::string origin() const;
  /// Throws Error EPERM that names the host and the key if its agents may not report the host.
  void check_speaks_for(std::string_view host) const;
  /// Throws the same error for the first of these hosts whose targets its requests may not change.
  void check_acts_on(const text::Hostlist& changed) const;
};

class Access {
 public:
  /// Makes the rules; `owner` is the uid that runs the daemon, `tokens` are those of HTTP clients.
  Access(const config::Access& rules, std::uint32_t owner, Tokens tokens = {});

  [[nodiscard]] Principal judge(const transport::Credentials& credentials) const;
  /// Whether a public key (Z85) is one of the configured ones.
  [[nodiscard]] bool knows_key(std::string_view key) const { return keys_.contains(std::string(key)); }
  /// Returns a copy with these rules for users of this machine.
  [[nodiscard]] Access with_rules(std::vector<config::AccessRule> rules) const;
  /// Returns a copy for users with these groups beside their primary ones.
  [[nodiscard]] Access with_groups(std::shared_ptr<const config::UserGroups> groups) const;
  [[nodiscard]] const std::shared_ptr<const config::UserGroups>& groups() const noexcept { return groups_; }
  /// Number of names in rules that the user database lacks.
  [[nodiscard]] std::size_t unknown_accounts() const noexcept;

 private:
  [[nodiscard]] config::Roles token_roles(Principal& principal, const std::string& digest) const;
  [[nodiscard]] config::Roles local_roles(const transport::Credentials& credentials) const;

  std::uint32_t owner_;
  config::Roles local_;
  config::Roles anonymous_;
  std::vector<config::AccessRule> rules_;
  /// Groups of users; null for none.
  std::shared_ptr<const config::UserGroups> groups_;
  struct Key {
    config::AccessKey rule;
    std::shared_ptr<const text::HostIndex> hosts;
  };
  std::unordered_map<std::string, Key> keys_;
  Tokens tokens_;
};

/// Sets the credentials of a request to those of its connection, which every response carries. An owner's
/// request that claims a userid keeps it (RFC 12).
void stamp(const Principal& sender, proto::Message& request);

/// Returns the actor of a stamped request, for the events that it causes: its userid, or else the key or
/// address of its sender.
[[nodiscard]] std::optional<module::Actor> actor_of(const Principal& sender, const proto::Message& request);

/// Returns the rights of a stamped request: fewer than those of its sender if an owner sends it for another
/// user.
[[nodiscard]] Rights rights_of_request(const Principal& sender, const proto::Message& request);

}  // namespace resourced::daemon::peers
