// Valid configurations: types, defaults, durations, verification, merging, paths.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;
using resourced::test::TempDir;

TEST_CASE("an empty file gives the defaults") {
  const Config config = load_text("");
  CHECK_FALSE(config.resource.has_inventory());
  CHECK(config.resource.path.empty());
  CHECK(config.resource.exclude.empty());
  CHECK_FALSE(config.resource.norestrict);
  CHECK_FALSE(config.resource.noverify);
  CHECK_FALSE(config.resource.rediscover);
  CHECK(config.resource.journal_max == 100000);
  CHECK_FALSE(config.resource.size);
  CHECK(config.resource.discovery_timeout == forever);
  CHECK(config.bus.listen.empty());
  CHECK(config.bus.send_hwm == 1000);
  CHECK(config.bus.receive_hwm == 1000);
  CHECK(config.bus.heartbeat_interval == std::chrono::seconds(5));
  CHECK(config.bus.heartbeat_timeout == std::chrono::seconds(15));
  CHECK(config.bus.max_message_size == 67108864);
  CHECK(config.store.directory.empty());
  CHECK(config.store.history == forever);
  CHECK(config.log.level == LogLevel::info);
  CHECK(config.acquire.partitions.empty());
}

TEST_CASE("every key is read") {
  const Config config = load_text(R"(
[resource]
exclude = "0,3"
norestrict = true
no-update-watch = true
rediscover = true
journal-max = 5
parent-uri = "local:///run/flux/local"
size = 16
discovery-timeout = "2m"
shrink-lost = true
[[resource.config]]
hosts = "a[0-3]"
cores = "0-7"
gpus = "1"
properties = ["x", "y@z", "+local"]
[bus]
listen = ["ipc:///tmp/bus", "tcp://*:5000", "local:///tmp/local"]
send-hwm = 10
receive-hwm = 20
heartbeat-interval = "250ms"
heartbeat-timeout = 1.5
max-message-size = 1048576
[store]
history = "30d"
[log]
level = "debug"
[[acquire.partition]]
name = "left"
targets = "a[0-1]"
[[acquire.partition]]
name = "right"
constraint = "x&-slow"
)");
  const Resource& resource = config.resource;
  CHECK(resource.exclude == "0,3");
  CHECK(resource.norestrict);
  CHECK(resource.no_update_watch);
  CHECK(resource.rediscover);
  CHECK(resource.journal_max == 5);
  CHECK(resource.parent_uri == "local:///run/flux/local");
  CHECK(resource.size == 16U);
  CHECK(resource.discovery_timeout == Seconds(120));
  CHECK(resource.shrink_lost);
  REQUIRE(resource.entries.size() == 1);
  CHECK(resource.entries[0].hosts.encode() == "a[0-3]");
  CHECK(resource.entries[0].cores.encode() == "0-7");
  CHECK(resource.entries[0].gpus.encode() == "1");
  CHECK(resource.entries[0].properties == std::vector<std::string>{"x", "y@z", "+local"});
  CHECK(config.bus.listen ==
        std::vector<std::string>{"ipc:///tmp/bus", "tcp://*:5000", "local:///tmp/local"});
  CHECK(config.bus.send_hwm == 10);
  CHECK(config.bus.receive_hwm == 20);
  CHECK(config.bus.heartbeat_interval == std::chrono::milliseconds(250));
  CHECK(config.bus.heartbeat_timeout == std::chrono::milliseconds(1500));
  CHECK(config.bus.max_message_size == 1048576);
  CHECK(config.store.history == Seconds(2592000));
  CHECK(config.log.level == LogLevel::debug);
  REQUIRE(config.acquire.partitions.size() == 2);
  CHECK(config.acquire.partitions[0] == Partition{"left", "a[0-1]", std::nullopt});
  CHECK(config.acquire.partitions[1] == Partition{"right", std::nullopt, "x&-slow"});
}

TEST_CASE("durations are RFC 23 text or a number of seconds") {
  const struct {
    std::string written;
    double seconds;
  } cases[] = {
      {R"("2ms")", 0.002},
      {R"("0.1s")", 0.1},
      {R"("30")", 30},
      {R"("1.2h")", 4320},
      {R"("5m")", 300},
      {R"("5d")", 432000},
      {"7", 7},
      {"7.5", 7.5},
      {"0", 0},
      {R"("inf")", std::numeric_limits<double>::infinity()},
      {"inf", std::numeric_limits<double>::infinity()},
  };
  for (const auto& c : cases) {
    CAPTURE(c.written);
    CHECK(load_text("[store]\nhistory = " + c.written).store.history == Seconds(c.seconds));
  }
}

TEST_CASE("verification, as [resource.verify] and noverify give it") {
  using enum rset::VerifyMode;
  const struct {
    std::string written;
    rset::VerifyOptions expected;
  } cases[] = {
      {"", {allow_extra, ignore, strict}},
      {"verify = true", {strict, strict, strict}},
      {"verify = false", {ignore, ignore, ignore}},
      {"[resource.verify]", {strict, strict, strict}},
      {"verify = {}", {strict, strict, strict}},
      {"verify = {default = 'allow-extra'}", {allow_extra, allow_extra, allow_extra}},
      {"verify = {default = 'ignore', core = 'allow-missing'}", {allow_missing, ignore, ignore}},
      {"verify = {gpu = 'ignore', hostname = 'allow-extra'}", {strict, ignore, allow_extra}},
      {"noverify = true", {ignore, ignore, ignore}},
      {"noverify = true\nverify = {core = 'strict'}", {ignore, ignore, ignore}},
      {"noverify = false\nverify = true", {strict, strict, strict}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.written);
    const rset::VerifyOptions verify = load_text("[resource]\n" + c.written).resource.verify;
    CHECK(verify.core == c.expected.core);
    CHECK(verify.gpu == c.expected.gpu);
    CHECK(verify.hostname == c.expected.hostname);
  }
}

TEST_CASE("log levels are known by name") {
  for (const LogLevel level : {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning,
                               LogLevel::error, LogLevel::critical, LogLevel::off})
    CHECK(parse_log_level(to_text(level)) == level);
  CHECK(failure_of([] { static_cast<void>(parse_log_level("loud")); }).text ==
        "\"loud\" is not a log level: trace, debug, info, warning, error, critical, off");
}

TEST_CASE("the files of a directory merge in name order") {
  const TempDir dir;
  dir.write("20-site.toml",
            "[resource]\nexclude = \"1\"\n[[resource.config]]\nhosts = \"b\"\ncores = \"0\"\n");
  dir.write("10-base.toml",
            "[resource]\nexclude = \"0\"\njournal-max = 7\n"
            "[[resource.config]]\nhosts = \"a0\"\ncores = \"0\"\n[[resource.config]]\nhosts = \"a1\"\ncores "
            "= \"0\"\n"
            "[bus]\nlisten = [\"ipc:///a\", \"ipc:///b\"]\n");
  dir.write("30-bus.toml", "[bus]\nlisten = [\"ipc:///c\"]\nsend-hwm = 3\n");
  dir.write(".hidden.toml", "not toml");
  dir.write("notes.txt", "not toml");
  const Config config = load(dir.path());

  SUBCASE("a later scalar wins, what it does not say stays") {
    CHECK(config.resource.exclude == "1");
    CHECK(config.resource.journal_max == 7);
    CHECK(config.bus.send_hwm == 3);
  }
  SUBCASE("arrays are replaced, arrays of tables too") {
    REQUIRE(config.resource.entries.size() == 1);
    CHECK(config.resource.entries[0].hosts.encode() == "b");
    CHECK(config.bus.listen == std::vector<std::string>{"ipc:///c"});
  }
  SUBCASE("each value keeps its place") {
    CHECK(config.where("resource.exclude") == dir.file("20-site.toml:2"));
    CHECK(config.where("resource.journal-max") == dir.file("10-base.toml:3"));
    CHECK(config.where("resource.config[0].cores") == dir.file("20-site.toml:5"));
    CHECK(config.where("bus.listen") == dir.file("30-bus.toml:2"));
  }
  SUBCASE("a key that was not written is placed at its table, an unknown table nowhere") {
    CHECK(config.where("resource.config[0].gpus") == dir.file("20-site.toml:3"));
    CHECK(config.where("resource.config[9].cores") == dir.file("20-site.toml:3"));
    CHECK(config.where("store.history").empty());
    CHECK(config.fault("store.history", "is wrong").what() == std::string("store.history: is wrong"));
    CHECK(config.fault("resource.exclude", "is wrong", EEXIST).what() ==
          dir.file("20-site.toml:2: resource.exclude: is wrong"));
    CHECK(config.fault("resource.exclude", "is wrong", EEXIST).errnum() == EEXIST);
  }
  SUBCASE("the files are listed in that order") {
    CHECK(config.files() ==
          std::vector{dir.file("10-base.toml"), dir.file("20-site.toml"), dir.file("30-bus.toml")});
  }
}

TEST_CASE("relative paths start at the directory of the file that names them") {
  const TempDir dir;
  dir.write("etc/c.toml",
            "[resource]\npath = \"R.json\"\nscheduling = \"/abs/s.json\"\n"
            "[store]\ndirectory = \"../state\"\n[bus]\ncurve-key-file = \"keys/k\"\n");
  for (const std::string& given : {dir.file("etc"), dir.file("etc/c.toml")}) {
    CAPTURE(given);
    const Config config = load(given);
    CHECK(config.resource.path == dir.file("etc/R.json"));
    CHECK(config.resource.scheduling == "/abs/s.json");
    CHECK(config.store.directory == dir.file("state"));
    CHECK(config.bus.curve_key_file == dir.file("etc/keys/k"));
  }
}

TEST_CASE("path is ignored where there is resource.config") {
  const Config config =
      load_text("[resource]\npath = \"/nowhere\"\n[[resource.config]]\nhosts = \"a\"\ncores = \"0\"\n");
  CHECK(config.resource.path.empty());
  CHECK(load_inventory(config).resources.counts().nodes == 1);
}
