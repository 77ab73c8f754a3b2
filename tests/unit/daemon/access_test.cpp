// From what a transport knows of a client to what it may do.
#include "daemon/access.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon {
namespace {

using config::Role;

constexpr std::uint32_t owner = 990;
constexpr std::uint32_t unknown = proto::userid_unknown;

Credentials user(std::uint32_t uid, std::uint32_t gid = 100) { return {uid, gid, {}, {}}; }

config::Access rules() {
  config::Access rules;
  rules.rules = {{{1001, 1002}, {}, {Role::admin}},
                 {{1002}, {50}, {Role::scheduler}},
                 {{1003}, {}, {}},
                 {{1004}, {}, {Role::owner}}};
  rules.keys = {{"login1", std::string(40, '1'), {Role::user}},
                {"node7", std::string(40, '2'), {Role::agent}},
                {"idle", std::string(40, '3'), {}}};
  return rules;
}

// Rights as letters: read, operate, schedule, Report; "-" for none.
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
    Credentials credentials;
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
      {user(2000), "uid 2000", "r", 2 | 4},
      {user(2000, 50), "uid 2000", "rs", 2 | 4},
      {{unknown, unknown, std::string(40, '1'), "10.0.0.1"}, "key login1", "r", 2},
      {{unknown, unknown, std::string(40, '2'), "10.0.0.1"}, "key node7", "R", 0},
      {{unknown, unknown, std::string(40, '3'), "10.0.0.1"}, "key idle", "-", 0},
      {{unknown, unknown, std::string(40, '4'), "10.0.0.1"}, "an unknown key", "-", 0},
      {{unknown, unknown, {}, "10.0.0.1"}, "address 10.0.0.1", "-", 0},
      {{unknown, unknown, {}, {}}, "address ", "-", 0},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const Principal principal = access.judge(row.credentials);
    CHECK(principal.name == row.name);
    CHECK(letters(principal.rights) == row.rights);
    CHECK(principal.rolemask == row.rolemask);
  }
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

TEST_CASE("credentials in a message are believed from the owner only") {
  const Access access(rules(), owner);
  proto::Message request;
  const auto rights = [&](std::uint32_t uid, std::uint32_t rolemask) {
    request.rolemask = rolemask;
    return letters(rights_of_request(access.judge(user(uid)), request));
  };
  CHECK(rights(owner, 0) == "rosR");
  CHECK(rights(owner, proto::role::owner) == "rosR");
  CHECK(rights(owner, proto::role::user) == "r");
  CHECK(rights(owner, proto::role::admin | proto::role::user) == "ro");
  // A role that means nothing here gives nothing.
  CHECK(rights(owner, proto::role::local) == "-");
  for (const std::uint32_t claimed : {0U, 1U, 8U, 15U, 0xFFFFFFFFU}) {
    CHECK(rights(2000, claimed) == "r");
    CHECK(rights(1001, claimed) == "ro");
    CHECK(rights(1003, claimed) == "-");
  }
}

}  // namespace
}  // namespace resourced::daemon
