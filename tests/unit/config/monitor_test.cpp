// [monitor]: how nodes are monitored, and the conditions that end discovery.
#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;

namespace {

const std::string inventory = "[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0\"\n";

}  // namespace

TEST_CASE("without [monitor] every node is online") {
  const Monitor monitor = load_text("").monitor;
  CHECK(monitor == Monitor{MonitorMode::fixed, Seconds(30), Seconds(120), Seconds(10), Seconds(0.2), 5,
                           Seconds(600), Seconds(120), forever, HealthReturn::manual, false});
  CHECK(load_text("[monitor]\nmode = \"static\"\n").monitor == monitor);
}

TEST_CASE("every key of [monitor] is read") {
  const Monitor monitor = load_text(inventory + R"([monitor]
mode = "agents"
torpid-after = "1m"
offline-after = 300
grace = "500ms"
coalesce = 0
flap-count = 3
flap-window = "1h"
lost-after = "1d"
drain-lost = "2h"
health-return = "auto"
health-gate = true
)")
                              .monitor;
  CHECK(monitor == Monitor{MonitorMode::agents, Seconds(60), Seconds(300), Seconds(0.5), Seconds(0), 3,
                           Seconds(3600), Seconds(86400), Seconds(7200), HealthReturn::automatic, true});
}

TEST_CASE("what is offline is lost after as long as it was silent, unless said otherwise") {
  CHECK(load_text("[monitor]\noffline-after = \"5m\"\n").monitor.lost_after == Seconds(300));
  CHECK(load_text("[monitor]\noffline-after = \"inf\"\n").monitor.lost_after == forever);
  CHECK(load_text("[monitor]\noffline-after = \"5m\"\nlost-after = 0\n").monitor.lost_after == Seconds(0));
}

TEST_CASE("what is wrong with [monitor] is named by file, line and key") {
  const struct {
    std::string text;
    std::string ending;
  } cases[] = {
      {"[monitor]\nmode = 'agent'\n", ":2: monitor.mode: \"agent\" is neither static nor agents"},
      {"[monitor]\nhealth-return = 'never'\n",
       ":2: monitor.health-return: \"never\" is neither manual nor auto"},
      {"[monitor]\nhealth-gate = 1\n", ":2: monitor.health-gate: must be true or false, not an integer"},
      {"[monitor]\nmode = true\n", ":2: monitor.mode: must be a string, not a boolean"},
      {"[monitor]\ntorpid-after = 0\n", ":2: monitor.torpid-after: must be more than 0"},
      {"[monitor]\noffline-after = '0s'\n", ":2: monitor.offline-after: must be more than 0"},
      {"[monitor]\ngrace = -1\n", ":2: monitor.grace: -1 is not a duration"},
      {"[monitor]\ncoalesce = 'inf'\n", ":2: monitor.coalesce: infs is more than 60s"},
      {"[monitor]\nflap-count = 1001\n", ":2: monitor.flap-count: 1001 is not from 0 to 1000"},
      {"[monitor]\nbeat = 1\n",
       ":2: monitor.beat: unknown key, not one of mode, torpid-after, offline-after, grace, coalesce, "
       "flap-count, flap-window, lost-after, drain-lost, health-return, health-gate"},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.text);
    const auto failure = failure_of([&] { (void)load_text(wrong.text); });
    CAPTURE(failure.text);
    CHECK(failure.text.ends_with(wrong.ending));
  }
}

TEST_CASE("discovery needs to know when it is over") {
  const std::string agents = "[monitor]\nmode = \"agents\"\n";
  const auto failure = failure_of([&] { (void)load_text(agents + "[resource]\nexclude = \"0\"\n"); });
  CHECK(failure.errnum == EINVAL);
  CHECK(failure.text.ends_with("resource.size: is missing: discovery needs a size or a discovery-timeout"));
  CHECK_NOTHROW(load_text(agents + "[resource]\nsize = 4\n"));
  CHECK_NOTHROW(load_text(agents + "[resource]\ndiscovery-timeout = \"1m\"\n"));
  CHECK_NOTHROW(load_text(agents + "[resource]\nparent-uri = \"local:///run/p\"\n"));
  CHECK_NOTHROW(load_text(agents + "[resource]\npath = \"R\"\n"));
  CHECK_NOTHROW(load_text(agents + inventory));
}

TEST_CASE("the times change live, the mode does not") {
  const auto plan = [](const std::string& now, const std::string& next) {
    const Config a = load_text(inventory + "[monitor]\n" + now);
    const Config b = load_text(inventory + "[monitor]\n" + next);
    return plan_reload(a, load_inventory(a), b, load_inventory(b));
  };
  CHECK_NOTHROW(plan("mode = 'agents'",
                     "mode = 'agents'\ntorpid-after = 1\noffline-after = 2\ngrace = 3\ncoalesce = 4\n"
                     "flap-count = 5\nflap-window = 6\nlost-after = 7"));
  CHECK(failure_of([&] {
          (void)plan("", "mode = 'agents'");
        }).text.ends_with(":5: monitor.mode: cannot change without a restart"));
}

TEST_CASE("config.get and --check show how nodes are watched") {
  const Config config = load_text(inventory + "[monitor]\nmode = 'agents'\ntorpid-after = 45\n");
  const nlohmann::json shown = to_json(config)["monitor"];
  CHECK(shown["mode"] == "agents");
  CHECK(shown["offline-after"] == "2m");
  CHECK(shown["flap-count"] == 5);
  CHECK(describe(config, nullptr).find("monitor: agents, torpid after 45s, offline after 2m\n") !=
        std::string::npos);
  CHECK(to_json(load_text(""))["monitor"]["mode"] == "static");
  CHECK(describe(load_text(""), nullptr).find("monitor") == std::string::npos);
}
