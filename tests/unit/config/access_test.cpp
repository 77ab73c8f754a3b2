// [access] and [limits]: names of users and groups become numbers when the file is read, and unknown ones are
// refused.
#include "config/access.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "config/inventory.hpp"
#include "config/remarks.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;

namespace {

const std::string key_text = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const std::string other_key_text = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

std::string key_entry(const std::string& name, const std::string& key, std::string_view roles = "['user']") {
  return fmt::format("[[access.key]]\nname = '{}'\npublic-key = '{}'\nroles = {}\n", name, key, roles);
}

}  // namespace

TEST_CASE("without [access], local users read and nobody comes in over TCP") {
  const Access access = load_text("").access;
  CHECK(access.local == Roles{Role::user});
  CHECK(access.anonymous.empty());
  CHECK(access.rules.empty());
  CHECK(access.keys.empty());
}

TEST_CASE("all groups of a user are found, and none of a user that there is not") {
  const std::vector<std::uint32_t> groups = groups_of_user(0).value();
  CHECK(std::ranges::find(groups, 0) != groups.end());
  CHECK(groups_of_user(4000000000).value().empty());
}

TEST_CASE("rules name users and groups of this machine") {
  const Access access = load_text(R"(
[access]
local = []
anonymous = ["user"]
[[access.rule]]
users = ["root", 1234, "5678"]
groups = ["root", 99]
roles = ["admin", "scheduler"]
[[access.rule]]
users = []
roles = []
)")
                            .access;
  CHECK(access.local.empty());
  CHECK(access.anonymous == Roles{Role::user});
  REQUIRE(access.rules.size() == 2);
  const AccessRule& rule = access.rules[0];
  for (const std::uint32_t uid : {0U, 1234U, 5678U}) {
    CHECK(std::ranges::find(rule.users, uid) != rule.users.end());
  }
  for (const std::uint32_t gid : {0U, 99U}) {
    CHECK(std::ranges::find(rule.groups, gid) != rule.groups.end());
  }
  CHECK(rule.roles == Roles{Role::admin, Role::scheduler});
}

TEST_CASE("a rule applies to nobody of a name that the user database lacks, and a remark says so") {
  const Config config = load_text(R"([[access.rule]]
users = ["root", "no such user", "4294967295"]
groups = ["no such group", 99]
roles = ["admin"]
[[resource.config]]
hosts = "n0"
cores = "0-3"
)");
  REQUIRE(config.access.rules.size() == 1);
  const AccessRule& rule = config.access.rules[0];
  CHECK(rule.users == std::vector<std::uint32_t>{0});
  CHECK(rule.groups == std::vector<std::uint32_t>{99});
  CHECK(rule.roles == Roles{Role::admin});
  CHECK(rule.unknown == std::vector<std::string>{R"(user "no such user")", R"(user "4294967295")",
                                                 R"(group "no such group")"});
  CHECK(looked_up(rule) == rule);
  const std::vector<std::string> lines = remarks(config, load_inventory(config).resources);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].ends_with(
      ":1: access.rule[0]: unknown user \"no such user\": the rule has no effect for this name until the "
      "account exists"));
}

TEST_CASE("a remark says what hosts of a key bind besides its agents") {
  const auto said = [](const std::string& roles) {
    const Config config = load_text(key_entry("rack7", key_text, roles) + R"(hosts = "n0"
[[resource.config]]
hosts = "n0"
cores = "0-3"
)");
    std::string text;
    for (const std::string& line : remarks(config, load_inventory(config).resources)) text += line + '\n';
    return text;
  };
  CHECK(said(R"(["agent"])").empty());
  CHECK(said(R"(["agent", "admin"])").find("access.key[0].hosts: this key can change these hosts alone") !=
        std::string::npos);
  CHECK(said(R"(["scheduler"])").find("access.key[0].hosts: with hosts this key can acquire nothing") !=
        std::string::npos);
}

TEST_CASE("keys have names and roles") {
  const Access access = load_text(key_entry("login1", key_text) + key_entry("login2", other_key_text)).access;
  REQUIRE(access.keys.size() == 2);
  CHECK(access.keys[0] == AccessKey{"login1", key_text, {Role::user}});
  CHECK(access.keys[1].public_key == other_key_text);
  CHECK_FALSE(access.keys[1].hosts);
}

TEST_CASE("the key of agents may be bound to hosts") {
  const std::string entry =
      "[[access.key]]\nname = 'nodes'\npublic-key = '" + key_text + "'\nroles = ['agent']\n";
  const Access access = load_text(entry + "hosts = 'n[0-1],n7'\n").access;
  REQUIRE(access.keys.size() == 1);
  CHECK(access.keys[0].hosts == text::Hostlist::parse("n[0-1,7]"));
  CHECK(load_text(entry + "hosts = ''\n").access.keys[0].hosts == text::Hostlist());
}

TEST_CASE("limits are read, and have defaults that no honest client meets") {
  const Limits limits = load_text(R"([limits]
outstanding-requests = 3
requests-per-second = 100
connections-per-uid = 5
journal-consumers = 6
handshake-timeout = "250ms"
)")
                            .limits;
  CHECK(limits == Limits{3, 100, 5, 6, std::chrono::milliseconds(250)});
  CHECK(load_text("").limits == Limits{1024, 50000, 4096, 1024, std::chrono::seconds(10)});
}

TEST_CASE("the sockets' mode and group") {
  CHECK(load_text("").bus.socket_mode == 0666);
  CHECK_FALSE(load_text("").bus.socket_group);
  const Bus bus = load_text("[bus]\nsocket-mode = \"0660\"\nsocket-group = \"root\"\n").bus;
  CHECK(bus.socket_mode == 0660);
  CHECK(bus.socket_group == 0U);
}

TEST_CASE("what is wrong with access and limits is named by file, line and key") {
  const std::string rule = "[[access.rule]]\n";
  const struct {
    std::string text;
    std::string ending;
  } cases[] = {
      {"[access]\nlocal = ['guest']\n",
       ":2: access.local: \"guest\" is not a role: owner, admin, user, scheduler, agent"},
      {"[access]\nanonymous = 'user'\n", ":2: access.anonymous: must be an array, not a string"},
      {"[access]\nkeys = []\n",
       ":2: access.keys: unknown key, not one of local, anonymous, rule, key; did you mean key?"},
      {rule + "roles = ['user']\n", ":1: access.rule[0]: must have users or groups"},
      {rule + "users = ['root']\n", ":1: access.rule[0].roles: is missing"},
      {rule + "users = [-1]\nroles = []\n", ":2: access.rule[0].users: must hold names and numbers"},
      {"[[access.key]]\npublic-key = '" + key_text + "'\nroles = []\n", ":1: access.key[0].name: is missing"},
      {"[[access.key]]\nname = 'a'\nroles = []\n", ":1: access.key[0].public-key: is missing"},
      {"[[access.key]]\nname = 'a'\npublic-key = '" + key_text + "'\nroles = ['agent']\nhosts = 7\n",
       ":5: access.key[0].hosts: must be a hostlist in a string, not an integer"},
      {key_entry("a", "short"),
       ":3: access.key[0].public-key: \"short\" is not a key of 40 characters (Z85)"},
      {key_entry("a", key_text) + key_entry("a", other_key_text),
       ":6: access.key[1].name: \"a\" is the name of an earlier key"},
      {key_entry("a", key_text) + key_entry("b", key_text),
       ":7: access.key[1].public-key: is the public key of an earlier key"},
      {"[limits]\noutstanding-requests = 0\n", ":2: limits.outstanding-requests: 0 is not from 1 to 1000000"},
      {"[limits]\nhandshake-timeout = 'inf'\n",
       ":2: limits.handshake-timeout: infs is not from 1ms to 3600s"},
      {"[bus]\nsocket-mode = '0888'\n", ":2: bus.socket-mode: \"0888\" is not a mode such as \"0660\""},
      {"[bus]\nsocket-mode = '7777'\n", ":2: bus.socket-mode: \"7777\" is not a mode such as \"0660\""},
      {"[bus]\nsocket-group = 'no such group'\n", ":2: bus.socket-group: unknown group: \"no such group\""},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.text);
    const auto failure = failure_of([&] { (void)load_text(wrong.text); });
    CAPTURE(failure.text);
    CHECK(failure.text.ends_with(wrong.ending));
  }
}

TEST_CASE("config.get shows the limits in force") {
  const nlohmann::json shown = to_json(load_text("[limits]\njournal-consumers = 7\n"));
  CHECK(shown["limits"]["journal-consumers"] == 7);
  CHECK(shown["limits"]["handshake-timeout"] == "10s");
}
