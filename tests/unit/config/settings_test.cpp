// The table of settings: each row is read into its field, checked against its bounds, shown by config.get,
// and changed or refused by a reload as the row says.
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/reload.hpp"
#include "config/setting.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;

namespace {

std::string name_of(const Setting& setting) { return fmt::format("{}.{}", setting.section, setting.key); }

bool is_nested(const Setting& setting) { return setting.section.find('.') != std::string_view::npos; }

std::string file_with(const Setting& setting, const std::string& value) {
  return fmt::format("[{}]\n{} = {}\n", setting.section, setting.key, value);
}

/// A TOML value of each setting that differs from its default, and that a reload can tell from it.
std::string other_value(const Setting& setting) {
  static const std::map<std::string, std::string> values{
      {"resource.path", R"("/r")"},
      {"resource.config", R"([{hosts = "a", cores = "0"}])"},
      {"resource.scheduling", R"("/s")"},
      {"resource.exclude", R"("0")"},
      {"resource.verify", "true"},
      {"resource.parent-uri", R"("ipc:///p")"},
      {"resource.parent-key-file", R"("/k")"},
      {"resource.rerank", R"("a[1,0]")"},
      {"bus.listen", R"(["ipc:///a"])"},
      {"bus.curve-key-file", R"("/k")"},
      {"bus.socket-mode", R"("0600")"},
      {"bus.socket-group", R"("root")"},
      {"store.directory", R"("/d")"},
      {"log.level", R"("off")"},
      {"acquire.partition", R"([{name = "p", targets = "0"}])"},
      {"access.local", R"(["admin"])"},
      {"access.anonymous", R"(["user"])"},
      {"access.rule", R"([{users = [1], roles = ["user"]}])"},
      {"access.key",
       R"([{name = "k", public-key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", roles = []}])"},
      {"monitor.mode", R"("agents")"},
      {"monitor.health-return", R"("auto")"},
      {"flux.socket", R"("/f")"},
      {"flux.user", R"("7")"},
      {"http.listen", R"(["127.0.0.1:1"])"},
      {"http.token-file", R"("/t")"},
      // A certificate and its key must be set together.
      {"http.certificate", "\"/c\"\nkey = \"/k\""},
      {"http.key", "\"/k\"\ncertificate = \"/c\""},
      {"http.names", R"(["a"])"},
      {"cluster.etcd", R"(["http://e"])"},
      {"cluster.name", R"("n")"},
      {"cluster.prefix", R"("/x/")"},
      {"cluster.advertise", R"("tcp://h:1")"},
      {"cluster.user", R"("u")"},
      {"cluster.password-file", R"("/p")"},
      {"cluster.certificate", R"("/c")"},
      {"cluster.key", R"("/k")"},
      {"cluster.ca-file", R"("/ca")"},
  };
  if (const auto found = values.find(name_of(setting)); found != values.end()) return found->second;
  switch (setting.value.type) {
    case Type::boolean:
      return "true";
    case Type::integer:
      return fmt::format("{}", setting.value.bounds->most);
    case Type::duration:
      return "7";
    default:
      FAIL("no value for " << name_of(setting) << ": give it one in settings_test.cpp");
      return "";
  }
}

/// The other settings that a setting requires, as TOML.
std::string context_of(const Setting& setting) {
  return name_of(setting) == "monitor.mode" ? "[resource]\nsize = 4\n" : "";
}

std::vector<Setting> fields() {
  std::vector<Setting> rows;
  for (const Setting& setting : settings()) {
    if (!is_nested(setting)) rows.push_back(setting);
  }
  return rows;
}

/// A number as TOML: an integer has no fraction.
std::string written(const Setting& setting, double value) {
  if (setting.value.type == Type::integer) return fmt::format("{}", static_cast<std::int64_t>(value));
  return std::isinf(value) ? "inf" : fmt::format("{:f}", value);
}

}  // namespace

TEST_CASE("sections and settings are named once, and every setting has its section") {
  std::set<std::string_view> names;
  for (const Section& section : sections()) {
    CAPTURE(section.name);
    CHECK(names.insert(section.name).second);
    CHECK_FALSE(settings_of(section.name).empty());
  }
  std::set<std::string> keys;
  std::size_t rows = 0;
  for (const Section& section : sections()) rows += settings_of(section.name).size();
  CHECK(rows == settings().size());
  for (const Setting& setting : settings()) {
    CAPTURE(name_of(setting));
    CHECK(names.contains(setting.section));
    CHECK(keys.insert(name_of(setting)).second);
  }
}

TEST_CASE("every setting has a help text of whole sentences; that of a table is with its section") {
  for (const Setting& setting : settings()) {
    CAPTURE(name_of(setting));
    if (setting.value.type == Type::table || setting.value.type == Type::entries) {
      CHECK_FALSE(settings_of(name_of(setting)).empty());
    } else {
      CHECK(setting.help.size() > 10);
      CHECK((setting.help.ends_with('.') || setting.help.ends_with(".)")));
    }
  }
}

TEST_CASE("a setting of its own has functions, a key inside a table does not") {
  for (const Setting& setting : settings()) {
    CAPTURE(name_of(setting));
    CHECK((setting.value.read != nullptr) == !is_nested(setting));
    CHECK((setting.value.tell != nullptr) == !is_nested(setting));
    CHECK((setting.value.same != nullptr) == !is_nested(setting));
    const bool is_number = setting.value.type == Type::integer || setting.value.type == Type::duration;
    CHECK(setting.value.bounds.has_value() == is_number);
  }
}

TEST_CASE("every setting is read into its field, and into no other's") {
  const std::set<std::pair<std::string, std::string>> follow{
      {"resource.history", "store.history"},    {"store.history", "resource.history"},
      {"resource.noverify", "resource.verify"}, {"monitor.offline-after", "monitor.lost-after"},
      {"http.certificate", "http.key"},         {"http.key", "http.certificate"}};
  for (const Setting& setting : fields()) {
    CAPTURE(name_of(setting));
    const Config none = load_text(context_of(setting));
    const Config config = load_text(context_of(setting) + file_with(setting, other_value(setting)));
    CHECK_FALSE(setting.value.same(config, none));
    const nlohmann::json told = setting.value.tell(config);
    if (!told.is_null()) CHECK(told != setting.value.tell(none));
    for (const Setting& other : fields()) {
      if (name_of(other) == name_of(setting) || follow.contains({name_of(setting), name_of(other)})) continue;
      CAPTURE(name_of(other));
      CHECK(other.value.same(config, none));
    }
  }
}

TEST_CASE("the default of every number is within its bounds") {
  const Config none;
  for (const Setting& setting : fields()) {
    if (!setting.value.bounds) continue;
    CAPTURE(name_of(setting));
    const nlohmann::json value = setting.value.tell(none);
    if (value.is_null()) continue;
    CHECK_NOTHROW((void)load_text(file_with(setting, value.dump())));
    CHECK(setting.value.same(load_text(file_with(setting, value.dump())), none));
  }
}

TEST_CASE("every number is taken within its bounds and refused beyond them") {
  for (const Setting& setting : fields()) {
    if (!setting.value.bounds) continue;
    CAPTURE(name_of(setting));
    const auto refusal = [&](double value) {
      return failure_of([&] { (void)load_text(file_with(setting, written(setting, value))); }).text;
    };
    const auto [least, most, excludes_least] = *setting.value.bounds;
    const double step = setting.value.type == Type::integer ? 1 : 0.001;
    const std::string place = fmt::format(":2: {}: ", name_of(setting));
    // A heartbeat that conflicts with another setting is refused by another error: "the heartbeat-timeout of
    // ...".
    const auto is_bounded = [&](const std::string& text) {
      return text.find(place) != std::string::npos && text.find("is shorter than") == std::string::npos;
    };
    CHECK_FALSE(is_bounded(refusal(excludes_least ? least + step : least)));
    CHECK_FALSE(is_bounded(refusal(most)));
    CHECK(is_bounded(refusal(excludes_least ? least : least - step)));
    if (!std::isinf(most)) CHECK(is_bounded(refusal(most + step)));
  }
}

TEST_CASE("a setting of another type is refused by file, line and key") {
  for (const Setting& setting : fields()) {
    CAPTURE(name_of(setting));
    const std::string wrong = setting.value.type == Type::boolean ? "2" : "2020-01-01";
    const std::string text = failure_of([&] { (void)load_text(file_with(setting, wrong)); }).text;
    CHECK(text.find(fmt::format(":2: {}: must be ", name_of(setting))) != std::string::npos);
  }
}

TEST_CASE("config.get tells every setting that is written, and some always") {
  const nlohmann::json without = to_json(load_text(""));
  for (const Setting& setting : fields()) {
    CAPTURE(name_of(setting));
    const nlohmann::json::json_pointer place(fmt::format("/{}/{}", setting.section, setting.key));
    CHECK(without.contains(place) == (setting.shown == Shown::always));
    if (without.contains(place)) CHECK(without[place] == setting.value.tell(Config()));
    const Config config = load_text(file_with(setting, other_value(setting)) + context_of(setting));
    const nlohmann::json with = to_json(config);
    REQUIRE(with.contains(place));
    CHECK_FALSE(with[place].is_null());
  }
}

TEST_CASE("a reload takes what may change live and refuses what takes a restart") {
  const Config before = load_text("[resource]\nsize = 9\n");
  for (const Setting& setting : fields()) {
    CAPTURE(name_of(setting));
    Config after = load_text(file_with(setting, other_value(setting)) + context_of(setting));
    if (name_of(setting) != "resource.size") after.resource.size = 9;
    const auto failure = failure_of([&] { (void)plan_reload(before, {}, after, {}); });
    const bool is_refused = setting.change == Change::restart || name_of(setting) == "resource.parent-uri";
    CHECK(failure.errnum == (is_refused ? EINVAL : 0));
    if (is_refused) {
      const std::string ending = fmt::format(":2: {}: cannot change without a restart", name_of(setting));
      CHECK(failure.text.ends_with(ending));
    }
  }
}
