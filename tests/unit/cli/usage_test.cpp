// resourcectl as a function: unknown words, pings, properties, the expiration, and the capabilities of a
// terminal.
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/screen/abilities.hpp"
#include "program_fixture.hpp"
#include "run_program.hpp"

using namespace resourced;
using nlohmann::json;
using test::Outcome;
using test::ProgramFixture;
using test::run;

namespace {

/// Sets an environment variable for the lifetime of this object.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  Variable(Variable&&) = delete;
  Variable& operator=(Variable&&) = delete;

 private:
  void set(const char* value) const {
    value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_);
    ::tzset();
  }

  const char* name_;
  std::optional<std::string> before_;
};

/// node[0-3]: 1 and 3 have the property gpu, 3 has the property big; the expiration is 1700007200.
constexpr const char* with_properties =
    R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}],)"
    R"("nodelist":["node[0-3]"],"properties":{"gpu":"1,3","big":"3"},"starttime":0.0,)"
    R"("expiration":1700007200.25}},"drain":{},"online":"0-3","offline":"","exclude":"","torpid":""})";

}  // namespace

TEST_SUITE("usage") {
  TEST_CASE("an empty value, as of a variable that is not set, is no option that is not given") {
    const std::vector<std::vector<std::string>> rows{{"drain", "--from", "", "n1", "x"},
                                                     {"drain", "--until=", "n1", "x"},
                                                     {"status", "-i", ""},
                                                     {"status", "-s", ""},
                                                     {"status", "-q", ""},
                                                     {"drain", "-q", "", "all", "x"},
                                                     {"--timeout", "", "status"},
                                                     {"eventlog", "--since", ""},
                                                     {"list", "-o", ""}};
    for (const std::vector<std::string>& arguments : rows) {
      CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
      const Outcome outcome = run(arguments);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.find(": the value is empty\n") != std::string::npos);
    }
  }

  TEST_CASE("an unknown command or option is named in one line, with the nearest one") {
    const auto check = [](const std::vector<std::string>& arguments, const std::string& text) {
      const Outcome outcome = run(arguments);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "resourcectl: " + text + "\n");
    };
    check({"satus"}, "unknown command \"satus\", did you mean status? See resourcectl --help");
    check({"--uri", "ipc:///none", "undrian", "node1"},
          "unknown command \"undrian\", did you mean undrain? See resourcectl --help");
    check({"nonsense"}, "unknown command \"nonsense\": see resourcectl --help");
    check({"property", "ad", "x", "1"},
          "unknown command \"ad\", did you mean add? See resourcectl property --help");
    check({"R", "dcode"}, "unknown command \"dcode\", did you mean decode? See resourcectl R --help");
    check({"status", "--jsno"},
          "unknown option \"--jsno\", did you mean --json? See resourcectl status --help");
    check({"status", "--forma={state}"},
          "unknown option \"--forma\", did you mean --format? See resourcectl status --help");
    check({"status", "-Z"}, "unknown option \"-Z\": see resourcectl status --help");
    // Neither the value of an option nor a word after -- is taken for a command.
    check({"drain", "--from", "--until", "1h", "--xyzzy", "x"},
          "unknown option \"--xyzzy\": see resourcectl drain --help");
    // Two known options that exclude each other.
    check({"feasibility", "slot=1/core=1", "--jobspec", "x"},
          "Exactly 1 option from [SHAPE,--jobspec] is required and 2 were given");
    check({"feasibility", "--jobspc", "x"},
          "unknown option \"--jobspc\", did you mean --jobspec? See resourcectl feasibility --help");
    const Outcome extra = run({"ping", "extra"});
    CHECK(extra.status == 2);
    CHECK(extra.err.find("extra") != std::string::npos);
    CHECK(run({"satus\n\x1b[2J"}).err.find('\x1b') == std::string::npos);
  }

  TEST_CASE("the state of Flux that the daemon does not hear of is refused with the command that shows it") {
    const auto outcome = run({"status", "-s", "avail,housekeeping"});
    CHECK(outcome.status == 2);
    CHECK(outcome.err ==
          "resourcectl: no state housekeeping: Flux's job manager knows it alone, see flux housekeeping "
          "list\n");
  }

  TEST_CASE("the abilities of the output follow --color and the environment") {
    using screen = cli::screen::ColourChoice;
    using cli::screen::abilities;
    const Variable term("TERM", "xterm");
    const Variable no_color("NO_COLOR", nullptr);
    const Variable lc_all("LC_ALL", "C.UTF-8");
    CHECK(abilities(screen::automatic, true).colours);
    CHECK(abilities(screen::automatic, true).moves);
    CHECK(!abilities(screen::automatic, false).colours);
    CHECK(!abilities(screen::automatic, false).moves);
    CHECK(abilities(screen::always, false).colours);
    CHECK(!abilities(screen::never, true).colours);
    {
      const Variable set("NO_COLOR", "1");
      CHECK(!abilities(screen::automatic, true).colours);
      CHECK(abilities(screen::automatic, true).moves);
      CHECK(abilities(screen::always, true).colours);
    }
    {
      const Variable empty("NO_COLOR", "");
      CHECK(abilities(screen::automatic, true).colours);
    }
    for (const char* name : {"dumb", "", static_cast<const char*>(nullptr)}) {
      const Variable dumb("TERM", name);
      CHECK(!abilities(screen::automatic, true).colours);
      CHECK(!abilities(screen::automatic, true).moves);
      CHECK(abilities(screen::always, true).colours);
    }
    CHECK(run({"--color", "maybe", "idset", "1"}).status == 2);
    CHECK(run({"idset", "1", "--color=never"}).out == "1\n");
    CHECK(run({"idset", "1", "-L", "never"}).out == "1\n");
    CHECK(run({"-Lnever", "idset", "1"}).out == "1\n");
    CHECK(run({"idset", "1", "-L", "maybe"}).status == 2);
    // As in flux-hostlist(1), the letter is another option there.
    CHECK(run({"hostlist", "-L", "1", "a,b"}).out == "a\n");
  }

  TEST_CASE("characters beyond ASCII follow the locale") {
    using cli::screen::abilities;
    using cli::screen::ColourChoice;
    const auto unicode = [](bool is_terminal) {
      return abilities(ColourChoice::automatic, is_terminal).unicode;
    };
    const Variable lc_all("LC_ALL", nullptr);
    const Variable lc_ctype("LC_CTYPE", nullptr);
    const Variable lang("LANG", nullptr);
    CHECK(!unicode(true));
    CHECK(unicode(false));
    for (const auto& [name, is_utf8] : {std::pair("C.UTF-8", true),
                                        {"C", false},
                                        {"POSIX", false},
                                        // Locales that this machine does not have.
                                        {"xx_XX.utf8", true},
                                        {"xx_XX.UTF-8@x", true},
                                        {"xx_XX", false},
                                        {"xx_XX.ISO-8859-1", false}}) {
      CAPTURE(name);
      const Variable set("LANG", name);
      CHECK(unicode(true) == is_utf8);
      CHECK(unicode(false) == is_utf8);
      // LC_ALL precedes LANG.
      const Variable all("LC_ALL", is_utf8 ? "C" : "C.UTF-8");
      CHECK(unicode(true) == !is_utf8);
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "several pings are summed up") {
    const auto answer = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const auto request = bus.receive();
        CHECK(json::parse(request.payload())["seq"] == i);
        bus.respond(request, request.payload());
      }
    };
    const Outcome three = run_with({"ping", "-c", "3", "-i", "1ms"}, [&] { answer(3); });
    CHECK(three.status == 0);
    CHECK(three.out.find(fmt::format("{}: seq=2 time=", uri)) != std::string::npos);
    CHECK(three.out.find(fmt::format("--- {} ping statistics ---\n3 sent, 3 answered, 0% lost, time ",
                                     uri)) != std::string::npos);
    CHECK(three.out.find("\nrtt min/avg/max = ") != std::string::npos);
    // The default without a terminal, and JSON, have no summary of the pings.
    CHECK(run_with({"ping"}, [&] { answer(1); }).out.find("---") == std::string::npos);
    const Outcome as_json = run_with({"ping", "--json", "-c", "2", "-i", "1ms"}, [&] { answer(2); });
    CHECK(as_json.out.find("---") == std::string::npos);
    CHECK(json::parse(as_json.out.substr(0, as_json.out.find('\n')))["seq"] == 0);
    const Outcome half = run_with({"ping", "-c", "5", "-i", "1ms"}, [&] {
      answer(1);
      bus.fail(bus.receive(), EPERM, "not any more");
    });
    CHECK(half.status == 1);
    CHECK(half.out.find("2 sent, 1 answered, 50% lost, time ") != std::string::npos);
    CHECK(half.err == "resourcectl: not any more\n");
    CHECK(run({"ping", "-i", "soon"}).status == 2);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "property add takes its arguments in either order, where that is clear") {
    const auto request = [&](const std::vector<std::string>& words) {
      json payload;
      std::vector<std::string> arguments{"property", "add", "--quiet"};
      arguments.insert(arguments.end(), words.begin(), words.end());
      const Outcome outcome = run_with(arguments, [&] {
        const auto change = receive_change();
        payload = json::parse(change.payload());
        bus.respond(change, "");
      });
      CHECK(outcome.status == 0);
      return std::pair(payload["name"], payload["targets"]);
    };
    CHECK(request({"fast", "node[1-2]"}) == std::pair<json, json>("fast", "node[1-2]"));
    CHECK(request({"node[1-2]", "fast"}) == std::pair<json, json>("fast", "node[1-2]"));
    CHECK(request({"0-3", "fast"}) == std::pair<json, json>("fast", "0-3"));
    CHECK(request({"all", "fast"}).first == "fast");
    // If neither argument names targets, the daemon refuses the second one.
    CHECK(request({"fast", "other"}) == std::pair<json, json>("fast", "other"));
    CHECK(request({"--name", "node1", "node2"}) == std::pair<json, json>("node1", "node2"));
    const Outcome both = run_with({"property", "add", "node1", "node2"},
                                  [&] { bus.respond(bus.receive(), test::status_payload); });
    CHECK(both.status == 2);
    CHECK(both.err ==
          "resourcectl: \"node1\" and \"node2\" both name targets: write --name PROPERTY TARGETS\n");
    CHECK(run({"property", "add", "fast"}).err == "resourcectl: TARGETS is required\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "property list and expiration show") {
    const auto shown = [&](const std::vector<std::string>& arguments) {
      return run_with(arguments, [&] { bus.respond(bus.receive(), with_properties); }).out;
    };
    const Variable zone("TZ", "CET-1");
    CHECK(shown({"property", "list"}) ==
          "PROPERTY NNODES NODELIST\nbig           1 node3\ngpu           2 node[1,3]\n");
    CHECK(shown({"property", "list", "-i", "node1", "-n", "-o", "{property} {ranks}"}) == "gpu 1\n");
    CHECK(shown({"property", "list", "-i", "node0", "-n"}).empty());
    CHECK(shown({"property", "list", "-i", "3", "--json"}) ==
          "{\"property\":\"big\",\"nnodes\":1,\"ranks\":\"3\",\"nodelist\":\"node3\"}\n"
          "{\"property\":\"gpu\",\"nnodes\":1,\"ranks\":\"3\",\"nodelist\":\"node3\"}\n");
    // The clock of the test is at 1700000000.
    CHECK(shown({"expiration", "show"}) == "2023-11-15T01:13:20+01:00 (in 2h)\n");
    CHECK(shown({"expiration", "show", "--json"}) == "{\"expiration\":1700007200.25}\n");
    CHECK(run_with({"expiration", "show"}, [&] { bus.respond(bus.receive(), test::status_payload); }).out ==
          "never\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "list has a row for each set of properties where they are shown") {
    const std::string r =
        R"({"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],)"
        R"("nodelist":["node[0-3]"],"properties":{"gpu":"1,3","big":"3"},"starttime":0.0,"expiration":0.0}})";
    const std::string down = R"({"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0-1"}}],)"
                             R"("nodelist":["node2"],"starttime":0.0,"expiration":0.0}})";
    const std::string none =
        R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})";
    const std::string answer = R"({"all":)" + r + R"(,"down":)" + down + R"(,"allocated":)" + none + "}";
    const auto list = [&](const std::string& format) {
      return run_with({"list", "-n", "-o", format}, [&] { bus.respond(bus.receive(), answer); }).out;
    };
    CHECK(list("{state} [{properties}] {nnodes} {nodelist}") ==
          "free [] 1 node0\nfree [gpu] 1 node1\nfree [big,gpu] 1 node3\nallocated [] 0\ndown [] 1 node2\n");
    CHECK(list("sort:-properties {state} {nodelist}") ==
          "free node1\nfree node3\nfree node0\nallocated\ndown node2\n");
    CHECK(list("{{properties}} {state} {nodelist}") ==
          "{properties} free node[0-1,3]\n{properties} allocated\n{properties} down node2\n");
    CHECK(list("{state} {nnodes} {nodelist}") == "free 3 node[0-1,3]\nallocated 0\ndown 1 node2\n");
  }
}
