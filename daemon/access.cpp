#include "daemon/access.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace resourced::daemon {
namespace {

constexpr std::uint32_t root = 0;

Rights all_rights() {
  Rights rights;
  for (const Right right : {Right::read, Right::operate, Right::schedule, Right::report}) rights.add(right);
  return rights;
}

// What a role is worth, and how RFC 12 writes it.
void grant(Principal& principal, config::Role role) {
  switch (role) {
    case config::Role::owner:
      principal.rights = all_rights();
      principal.rolemask |= proto::role::owner;
      return;
    case config::Role::admin:
      principal.rights.add(Right::read);
      principal.rights.add(Right::operate);
      principal.rolemask |= proto::role::admin | proto::role::user;
      return;
    case config::Role::user:
      principal.rights.add(Right::read);
      principal.rolemask |= proto::role::user;
      return;
    case config::Role::scheduler:
      principal.rights.add(Right::read);
      principal.rights.add(Right::schedule);
      principal.rolemask |= proto::role::user;
      return;
    case config::Role::agent:
      principal.rights.add(Right::report);
      return;
  }
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
  }
  return "owner";
}

Access::Access(const config::Access& rules, std::uint32_t owner)
    : owner_(owner), local_(rules.local), anonymous_(rules.anonymous), rules_(rules.rules) {
  for (const config::AccessKey& key : rules.keys) keys_.emplace(key.public_key, key);
}

config::Roles Access::local_roles(const Credentials& credentials) const {
  if (credentials.userid == owner_ || credentials.userid == root) return {config::Role::owner};
  config::Roles roles;
  bool named = false;
  for (const config::AccessRule& rule : rules_) {
    const bool applies = std::ranges::find(rule.users, credentials.userid) != rule.users.end() ||
                         std::ranges::find(rule.groups, credentials.groupid) != rule.groups.end();
    if (!applies) continue;
    named = true;
    roles.insert(roles.end(), rule.roles.begin(), rule.roles.end());
  }
  return named ? roles : local_;
}

Principal Access::judge(const Credentials& credentials) const {
  Principal principal;
  config::Roles roles;
  if (!credentials.key.empty()) {
    const auto found = keys_.find(credentials.key);
    principal.name = found == keys_.end() ? "an unknown key" : "key " + found->second.name;
    if (found != keys_.end()) roles = found->second.roles;
  } else if (credentials.userid != proto::userid_unknown) {
    principal.name = fmt::format("uid {}", credentials.userid);
    principal.userid = credentials.userid;
    principal.rolemask = proto::role::local;
    roles = local_roles(credentials);
  } else {
    principal.name = "address " + credentials.address;
    // A Unix socket whose peer the kernel does not name has no address either, and no rights.
    if (!credentials.address.empty()) roles = anonymous_;
  }
  for (const config::Role role : roles) grant(principal, role);
  return principal;
}

Rights rights_of_request(const Principal& sender, const proto::Message& request) {
  if (!sender.is_owner() || request.rolemask == proto::role::none) return sender.rights;
  Principal claimed;
  if ((request.rolemask & proto::role::owner) != 0) grant(claimed, config::Role::owner);
  if ((request.rolemask & proto::role::admin) != 0) grant(claimed, config::Role::admin);
  if ((request.rolemask & proto::role::user) != 0) grant(claimed, config::Role::user);
  return claimed.rights;
}

}  // namespace resourced::daemon
