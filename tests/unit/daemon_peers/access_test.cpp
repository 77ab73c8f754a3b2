// The rights of a client by the credentials that its transport reports.
#include "daemon/peers/access.hpp"

#include <utility>

#include <doctest/doctest.h>

namespace resourced::daemon::peers {
namespace {

using config::Role;

constexpr std::uint32_t owner = 990;
constexpr std::uint32_t unknown = proto::userid_unknown;

transport::Credentials user(std::uint32_t uid, std::uint32_t gid = 100) { return {uid, gid, {}, {}}; }

config::Access rules() {
  config::Access rules;
  rules.rules = {{{1001, 1002}, {}, {Role::admin}},
                 {{1002}, {50}, {Role::scheduler}},
                 {{1003}, {}, {}},
                 {{1004}, {}, {Role::owner}},
                 {{1005}, {}, {Role::agent}}};
  rules.keys = {{"login1", std::string(40, '1'), {Role::user}},
                {"node7", std::string(40, '2'), {Role::agent}},
                {"idle", std::string(40, '3'), {}},
                {"admin", std::string(40, '5'), {Role::admin}},
                {"root", std::string(40, '6'), {Role::owner}}};
  return rules;
}

// Rights as letters: read, operate, schedule, Report; "-" for none
std::string letters(const Rights& rights) {
  std::string text;
  if (rights.has(Right::read)) text += 'r';
  if (rights.has(Right::operate)) text += 'o';
  if (rights.has(Right::schedule)) text += 's';
  if (rights.has(Right::report)) text += 'R';
  CHECK(rights.any() == !text.empty());
  CHECK(rights.has(Right::none));
  return text.empty() ? "-" : text;
}

TEST_CASE("who may do what") {
  const Access access(rules(), owner);
  const struct {
    transport::Credentials credentials;
    std::string name;
    std::string rights;
    std::uint32_t rolemask;
  } rows[] = {
      {user(owner), "uid 990", "rosR", 1 | 4},
      {user(0), "uid 0", "rosR", 1 | 4},
      {user(1001), "uid 1001", "ro", 2 | 4 | 8},
      {user(1002), "uid 1002", "ros", 2 | 4 | 8},
      {user(1003), "uid 1003", "-", 4},
      {user(1004), "uid 1004", "rosR", 1 | 4},
      {user(1005), "uid 1005", "R", 2 | 4},
      {user(2000), "uid 2000", "r", 2 | 4},
      {user(2000, 50), "uid 2000", "rs", 2 | 4},
      {{unknown, unknown, std::string(40, '1'), "10.0.0.1"}, "key login1", "r", 2},
      {{unknown, unknown, std::string(40, '5'), "10.0.0.1"}, "key admin", "ro", 2 | 8},
      {{unknown, unknown, std::string(40, '6'), "10.0.0.1"}, "key root", "rosR", 2 | 8},
      {{unknown, unknown, std::string(40, '2'), "10.0.0.1"}, "key node7", "R", 2},
      {{unknown, unknown, std::string(40, '3'), "10.0.0.1"}, "key idle", "-", 2},
      {{unknown, unknown, std::string(40, '4'), "10.0.0.1"}, "an unknown key", "-", 2},
      {{unknown, unknown, {}, "10.0.0.1"}, "address 10.0.0.1", "-", 2},
      {{unknown, unknown, {}, {}}, "address ", "-", 2},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const Principal principal = access.judge(row.credentials);
    CHECK(principal.name == row.name);
    CHECK(letters(principal.rights) == row.rights);
    CHECK(principal.userid == row.credentials.userid);
    CHECK(principal.rolemask == row.rolemask);
  }
}

TEST_CASE("a user has the roles of all groups that the user database tells, until it tells others") {
  const Access access(rules(), owner);
  const auto rights = [](const Access& of, std::uint32_t uid) { return letters(of.judge(user(uid)).rights); };
  const Access grouped =
      access.with_groups(std::make_shared<const config::UserGroups>(config::UserGroups{{2000, {7, 50}}}));
  CHECK(rights(grouped, 2000) == "rs");
  CHECK(rights(grouped, 2001) == "r");
  CHECK(rights(grouped.with_rules({}), 2000) == "r");
  CHECK(
      rights(grouped.with_groups(std::make_shared<const config::UserGroups>(config::UserGroups{{2000, {7}}})),
             2000) == "r");
}

TEST_CASE("a key decides even where the kernel knows the user") {
  const Access access(rules(), owner);
  CHECK(letters(access.judge({0, 0, std::string(40, '1'), {}}).rights) == "r");
}

TEST_CASE("anonymous peers have the roles that the site gives them, nameless sockets none") {
  config::Access open = rules();
  open.anonymous = {Role::user};
  open.local = {};
  const Access access(open, owner);
  CHECK(letters(access.judge({unknown, unknown, {}, "10.0.0.1"}).rights) == "r");
  CHECK(letters(access.judge({unknown, unknown, {}, {}}).rights) == "-");
  CHECK(letters(access.judge(user(2000)).rights) == "-");
}

TEST_CASE("a request has the credentials of its connection; an owner's own claims stand") {
  const Access access(rules(), owner);
  proto::Message request;
  const auto stamped = [&](const transport::Credentials& credentials, std::uint32_t userid,
                           std::uint32_t rolemask) {
    request.userid = userid;
    request.rolemask = rolemask;
    const Principal sender = access.judge(credentials);
    stamp(sender, request);
    return std::pair(request.userid, request.rolemask);
  };
  const auto rights = [&](const transport::Credentials& credentials, std::uint32_t userid,
                          std::uint32_t rolemask) {
    stamped(credentials, userid, rolemask);
    return letters(rights_of_request(access.judge(credentials), request));
  };
  using proto::role::admin;
  using proto::role::local;
  const std::uint32_t as_user = proto::role::user;
  const std::uint32_t as_owner = proto::role::owner;
  const auto pair = [](std::uint32_t userid, std::uint32_t rolemask) { return std::pair(userid, rolemask); };

  CHECK(stamped(user(owner), unknown, 0) == pair(owner, as_owner | local));
  // Credentials without a userid are ignored.
  CHECK(stamped(user(owner), unknown, as_user) == pair(owner, as_owner | local));
  CHECK(stamped(user(owner), 2000, as_user) == pair(2000, as_user));
  // Credentials without a role get the roles of the connection, as Flux 0.88 does for FLUX_HANDLE_USERID
  // alone.
  CHECK(stamped(user(owner), 2000, 0) == pair(2000, as_owner | local));
  CHECK(rights(user(owner), unknown, as_user) == "rosR");
  CHECK(rights(user(owner), owner, as_owner) == "rosR");
  CHECK(rights(user(owner), 2000, as_user) == "r");
  CHECK(rights(user(owner), 2000, admin | as_user) == "ro");
  // The flag `local` alone grants nothing.
  CHECK(rights(user(owner), 2000, local) == "-");
  CHECK(rights(user(owner), 2000, 0) == "rosR");

  const transport::Credentials key{unknown, unknown, std::string(40, '1'), "10.0.0.1"};
  const transport::Credentials owner_key{unknown, unknown, std::string(40, '6'), "10.0.0.1"};
  for (const std::uint32_t userid : {0U, owner, 2000U, unknown}) {
    for (const std::uint32_t claimed : {0U, 1U, 8U, 15U, 0xFFFFFFFFU}) {
      CHECK(stamped(user(2000), userid, claimed) == pair(2000, as_user | local));
      CHECK(stamped(user(1001), userid, claimed) == pair(1001, as_user | local | admin));
      CHECK(stamped(user(1003), userid, claimed) == pair(1003, local));
      CHECK(stamped(key, userid, claimed) == pair(unknown, as_user));
      CHECK(stamped(owner_key, userid, claimed) == pair(unknown, as_user | admin));
      CHECK(rights(user(2000), userid, claimed) == "r");
      CHECK(rights(user(1001), userid, claimed) == "ro");
      CHECK(rights(user(1003), userid, claimed) == "-");
      CHECK(rights(owner_key, userid, claimed) == "rosR");
    }
  }
}

}  // namespace
}  // namespace resourced::daemon::peers
