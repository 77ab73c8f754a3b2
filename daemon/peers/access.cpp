#include "daemon/peers/access.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::daemon::peers {
namespace {

constexpr std::uint32_t root = 0;

Rights all_rights() {
  Rights rights;
  for (const Right right : {Right::read, Right::operate, Right::schedule, Right::report, Right::own})
    rights.add(right);
  return rights;
}

void grant(Rights& rights, config::Role role) {
  switch (role) {
    case config::Role::owner:
      rights = all_rights();
      return;
    case config::Role::admin:
      rights.add(Right::read);
      rights.add(Right::operate);
      return;
    case config::Role::user:
      rights.add(Right::read);
      return;
    case config::Role::scheduler:
      rights.add(Right::read);
      rights.add(Right::schedule);
      return;
    case config::Role::agent:
      rights.add(Right::report);
      return;
  }
}

bool can_read(config::Role role) { return role != config::Role::agent; }

Error unbound_host(const Principal& principal, std::string_view host) {
  return {EPERM, fmt::format("{} is not among the hosts of {}: add it to hosts in its [[access.key]]", host,
                             principal.name)};
}

// Returns the rolemask (RFC 12) of a peer with these roles. Only a user whose uid the kernel reports can be
// an owner.
std::uint32_t rolemask_of(const config::Roles& roles, bool is_local) {
  const auto has = [&roles](config::Role role) { return std::ranges::find(roles, role) != roles.end(); };
  const bool owns = has(config::Role::owner);
  if (is_local && owns) return proto::role::owner | proto::role::local;
  std::uint32_t mask = is_local ? proto::role::local : proto::role::user;
  if (!roles.empty()) mask |= proto::role::user;
  if (owns || has(config::Role::admin)) mask |= proto::role::admin;
  return mask;
}

}  // namespace

std::string_view role_for(Right right) noexcept {
  switch (right) {
    case Right::none:
      return "any";
    case Right::read:
      return "user";
    case Right::operate:
      return "admin";
    case Right::schedule:
      return "scheduler";
    case Right::report:
      return "agent";
    case Right::own:
      break;
  }
  return "owner";
}

Access::Access(const config::Access& rules, std::uint32_t owner, Tokens tokens)
    : owner_(owner),
      local_(rules.local),
      anonymous_(rules.anonymous),
      rules_(rules.rules),
      tokens_(std::move(tokens)) {
  for (const config::AccessKey& key : rules.keys) {
    keys_.emplace(key.public_key,
                  Key{key, key.hosts ? std::make_shared<const text::HostIndex>(*key.hosts) : nullptr});
  }
}

Access Access::with_rules(std::vector<config::AccessRule> rules) const {
  Access access = *this;
  access.rules_ = std::move(rules);
  return access;
}

Access Access::with_groups(std::shared_ptr<const config::UserGroups> groups) const {
  Access access = *this;
  access.groups_ = std::move(groups);
  return access;
}

std::size_t Access::unknown_accounts() const noexcept {
  std::size_t count = 0;
  for (const config::AccessRule& rule : rules_) count += rule.unknown.size();
  return count;
}

config::Roles Access::local_roles(const transport::Credentials& credentials) const {
  if (credentials.userid == owner_ || credentials.userid == root) return {config::Role::owner};
  config::Roles roles;
  const std::vector<std::uint32_t>* further = nullptr;
  if (groups_) {
    if (const auto known = groups_->find(credentials.userid); known != groups_->end())
      further = &known->second;
  }
  const auto is_member = [&](std::uint32_t group) {
    return group == credentials.groupid ||
           (further != nullptr && std::ranges::find(*further, group) != further->end());
  };
  bool named = false;
  for (const config::AccessRule& rule : rules_) {
    const bool applies = std::ranges::find(rule.users, credentials.userid) != rule.users.end() ||
                         std::ranges::any_of(rule.groups, is_member);
    if (!applies) continue;
    named = true;
    roles.insert(roles.end(), rule.roles.begin(), rule.roles.end());
  }
  return named ? roles : local_;
}

config::Roles Access::token_roles(Principal& principal, const std::string& digest) const {
  const Token* token = tokens_.find(digest);
  principal.name = token == nullptr ? "an unknown token" : "token " + token->name;
  return token == nullptr ? config::Roles{} : token->roles;
}

Principal Access::judge(const transport::Credentials& credentials) const {
  Principal principal;
  principal.address = credentials.address;
  config::Roles roles;
  bool is_local = false;
  if (!credentials.key.empty()) {
    const auto found = keys_.find(credentials.key);
    principal.name = found == keys_.end() ? "an unknown key" : "key " + found->second.rule.name;
    if (found != keys_.end()) {
      roles = found->second.rule.roles;
      principal.actor = module::ByKey{found->second.rule.name};
      principal.hosts = found->second.hosts;
    }
  } else if (!credentials.token.empty()) {
    roles = token_roles(principal, credentials.token);
  } else if (credentials.reads_by_loopback) {
    // Use one name for all loopback addresses, because every user of this machine can use any of them.
    principal.name = "loopback";
    // So the peer may read only if all users may.
    const auto reads = [](const config::AccessRule& rule) {
      return std::ranges::any_of(rule.roles, can_read);
    };
    if (std::ranges::any_of(local_, can_read) && std::ranges::all_of(rules_, reads))
      roles = {config::Role::user};
  } else if (credentials.userid != proto::userid_unknown) {
    principal.name = fmt::format("uid {}", credentials.userid);
    principal.userid = credentials.userid;
    principal.of_instance = credentials.of_instance;
    is_local = true;
    roles = credentials.of_instance ? config::Roles{config::Role::owner} : local_roles(credentials);
  } else {
    principal.name = "address " + credentials.address;
    // A peer on a Unix socket without a uid from the kernel has no address either, and gets no rights.
    if (!credentials.address.empty()) {
      roles = anonymous_;
      principal.actor = module::ByAddress{credentials.address};
    }
  }
  for (const config::Role role : roles) grant(principal.rights, role);
  principal.rolemask = rolemask_of(roles, is_local);
  return principal;
}

std::string Principal::origin() const {
  const bool is_named_so = name.ends_with(address);
  return is_named_so ? name : fmt::format("{} ({})", address, name);
}

void Principal::check_speaks_for(std::string_view host) const {
  if (hosts != nullptr && !hosts->find(host)) throw unbound_host(*this, host);
}

void Principal::check_acts_on(const text::Hostlist& changed) const {
  if (hosts == nullptr) return;
  const text::HostIndex::Found found = hosts->find(changed, 0, std::numeric_limits<std::size_t>::max());
  if (!found.unknown.empty()) throw unbound_host(*this, found.unknown.front());
}

void stamp(const Principal& sender, proto::Message& request) {
  const bool claims = sender.is_owner() && request.userid != proto::userid_unknown;
  if (!claims) request.userid = sender.userid;
  // Without any role a credential is invalid (RFC 12), and Flux would drop the response.
  if (!claims || request.rolemask == proto::role::none) request.rolemask = sender.rolemask;
}

std::optional<module::Actor> actor_of(const Principal& sender, const proto::Message& request) {
  if (request.userid != proto::userid_unknown) return module::ByUser{request.userid};
  return sender.actor;
}

Rights rights_of_request(const Principal& sender, const proto::Message& request) {
  if (!sender.is_owner()) return sender.rights;
  Rights claimed;
  if ((request.rolemask & proto::role::owner) != 0) grant(claimed, config::Role::owner);
  if ((request.rolemask & proto::role::admin) != 0) grant(claimed, config::Role::admin);
  if ((request.rolemask & proto::role::user) != 0) grant(claimed, config::Role::user);
  return claimed;
}

}  // namespace resourced::daemon::peers
