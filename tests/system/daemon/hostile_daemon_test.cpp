// The output of clients of a hostile daemon, which the test plays on a plain socket: its texts must not
// control a terminal or a log.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "harness/process.hpp"
#include "temp_dir.hpp"
#include "wire/local_client.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using test::read_file;
using test::TempDir;
using namespace wire;
using namespace std::string_literals;

class HostileDaemon {
 public:
  [[nodiscard]] std::string uri() const { return "local://" + path(); }

  /// Answers the first request of the next client. With errnum 0 the payload is a success, after which a
  /// streaming client waits for more.
  void answer(std::uint32_t errnum, const std::string& payload) {
    peer_.emplace(listener_.accept());
    peer_->send("\0"s);
    const Parts request = peer_->receive();
    peer_->send(local_frame(response_parts(request, errnum, payload, errnum == 0 ? flag_streaming : 0)));
  }

 private:
  [[nodiscard]] std::string path() const { return dir_ / "local"; }

  TempDir dir_;
  RawListener listener_{path()};
  std::optional<LocalClient> peer_;
};

/// Escape sequences in both encodings, a second line, text from right to left, bytes that are not UTF-8, and
/// far more bytes than a line may have.
const std::string hostile_text =
    "\033[2J\u009b31m\x7f\xFF\xC2\nresourcectl: all is well\r\u202e" + std::string(100'000, 'x');

/// Checks that a text is one short line without control characters.
void check_harmless(std::string line) {
  CAPTURE(line.substr(0, 300));
  REQUIRE(line.ends_with('\n'));
  line.pop_back();
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) FAIL_CHECK("a control character: ", int{byte});
  }
  for (const char* bad : {"\u009b", "\u202e"}) CHECK(line.find(bad) == std::string::npos);
  // dump() throws for invalid UTF-8.
  CHECK_NOTHROW(static_cast<void>(json(line).dump()));
  CHECK(line.find(R"(\u001b[2J\u009b31m\u007f)") != std::string::npos);
  CHECK(line.size() < 1200);
}

TEST_SUITE_BEGIN("hostile_daemon");

TEST_CASE("the text of a refusal does nothing to a terminal or a log, and is short") {
  HostileDaemon daemon;
  const std::string bin = RESOURCED_BIN;
  const std::vector<std::vector<std::string>> commands{
      {bin + "/resourcectl", "--uri", daemon.uri(), "drain", "1"},
      {bin + "/resourcectl", "--uri", daemon.uri(), "acquire"},
      {bin + "/resourcectl", "--uri", daemon.uri(), "eventlog", "-F"},
      {bin + "/fifo_scheduler", "--uri", daemon.uri()},
  };
  for (const auto& command : commands) {
    Process client(command);
    daemon.answer(EPERM, hostile_text + '\0');
    const Outcome outcome = client.finish();
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    check_harmless(outcome.err);
  }
}

TEST_CASE("the log of an agent shows the text of a refusal on one short line") {
  HostileDaemon daemon;
  const TempDir dir;
  Process agent({RESOURCED_BIN "/resource-agent", "--uri", daemon.uri(), "--hostname", "n1", "--synthetic",
                 "core:4 pu:1"},
                {.error_file = dir / "log"});
  daemon.answer(EPERM, hostile_text + '\0');
  std::string log;
  const Deadline deadline;
  while (log.find("trying again in") == std::string::npos && !deadline.passed()) log = read_file(dir / "log");
  agent.signal(SIGTERM);
  CHECK(agent.wait() == 0);
  log.erase(0, log.find("the daemon refuses this agent"));
  CHECK(log.find("resourcectl: all is well") < log.find('\n'));
  check_harmless(log.substr(0, log.find('\n') + 1));
}

TEST_CASE("JSON of the daemon is shown on one line, with the same value") {
  HostileDaemon daemon;
  const std::string value = "\u009b2J\x7f\u202e";
  const std::string r =
      R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["n0"],)"
      R"("starttime":0.0,"expiration":0.0}})";
  const auto check = [&](const std::string& out, const json& expected) {
    CHECK(out.find('\n') == out.size() - 1);
    for (const char* bad : {"\u009b", "\x7f", "\u202e", "\t"}) CHECK(out.find(bad) == std::string::npos);
    CHECK(json::parse(out) == expected);
  };
  {
    Process client({RESOURCED_BIN "/resourcectl", "--uri", daemon.uri(), "acquire", "--count", "1"});
    const std::string response = "{\n\t\"resources\": " + r + ",\r\n\"up\": \"0\", \"x\": \"" + value + "\"}";
    daemon.answer(0, response + '\0');
    const Outcome outcome = client.finish();
    CHECK(outcome.status == 0);
    check(outcome.out, json::parse(response));
  }
  {
    Process client(
        {RESOURCED_BIN "/resourcectl", "--uri", daemon.uri(), "eventlog", "--json", "-w", "drain"});
    const json event{{"timestamp", 1.5}, {"name", "drain"}, {"context", {{value, value}}}};
    daemon.answer(0, json{{"events", json::array({event})}}.dump() + '\0');
    const Outcome outcome = client.finish();
    CHECK(outcome.status == 0);
    check(outcome.out, event);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
