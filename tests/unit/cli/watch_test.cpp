// resourcectl status --watch and top; the test plays the daemon.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "program_fixture.hpp"

namespace resourced::test {
namespace {

using nlohmann::json;

constexpr const char* none = R"({"events":[]})";

/// Returns the next request, which must be of this topic; skips cancellations of earlier requests.
wire::Frames receive(wire::FakeBus& bus, const std::string& topic) {
  for (;;) {
    auto request = bus.receive();
    if (request.topic().ends_with("-cancel") || request.topic() == "resource.disconnect") continue;
    CHECK(request.topic() == topic);
    return request;
  }
}

std::vector<std::string> without_times(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("--- ")) line.erase(4, line.find(' ', 4) + 1 - 4);
    lines.push_back(std::move(line));
  }
  return lines;
}

TEST_CASE_FIXTURE(ProgramFixture, "the table comes after events, and after the journal was lost") {
  const auto outcome = run_with({"status", "--watch", "-s", "exclude"}, [&] {
    const auto of_last = receive(bus, "resource.journal");
    CHECK(json::parse(of_last.payload()) == json{{"since", 253402300799.0}});
    bus.respond(of_last, R"({"events":[],"last":7})", true);
    const auto journal = receive(bus, "resource.journal");
    CHECK(json::parse(journal.payload()) == json{{"after", 7}});
    bus.respond(journal, R"({"events":[],"last":7})", true);
    bus.respond(receive(bus, "resource.status"), status_payload);
    // An event that does not change the table prints nothing.
    bus.respond(journal, R"({"events":[{"timestamp":1,"name":"x"}],"last":8})", true);
    bus.respond(receive(bus, "resource.status"), status_payload);
    bus.fail(journal, ENODATA, "the daemon stops");
    const auto again = receive(bus, "resource.journal");
    CHECK(json::parse(again.payload()) == json{{"after", 8}});
    bus.respond(again, R"({"events":[],"last":8})", true);
    bus.respond(receive(bus, "resource.status"), status_payload);
    // The daemon has another log now, which does not have event 8 yet.
    bus.fail(again, ENODATA, "the daemon stops");
    bus.fail(receive(bus, "resource.journal"), EINVAL, "after: there is no event 8");
    CHECK(json::parse(receive(bus, "resource.journal").payload()).contains("since"));
    bus.close();
  });
  CHECK(outcome.status == 1);
  const std::vector<std::string> table{"  STATE UP NNODES NODELIST", "exclude no      1 node6"};
  CHECK(without_times(outcome.out) ==
        std::vector<std::string>{"--- live", table[0], table[1], "--- not live: the daemon stops", "--- live",
                                 table[0], table[1], "--- not live: the daemon stops"});
}

TEST_CASE_FIXTURE(ProgramFixture,
                  "without numbers of events the history comes as a whole, and the end is an error") {
  const auto outcome = run_with({"top"}, [&] {
    bus.respond(receive(bus, "resource.journal"), none, true);
    const auto journal = receive(bus, "resource.journal");
    CHECK(json::parse(journal.payload()) == json{{"allocations", true}});
    bus.respond(journal, R"({"events":[{"timestamp":1,"name":"alloc"},{"timestamp":2,"name":"online"}]})",
                true);
    bus.respond(journal, none, true);
    for (int i = 0; i < 2; ++i) {
      const auto request = bus.receive();
      if (request.topic() == "resource.peers") {
        bus.fail(request, ENOSYS, "no such topic");
      } else {
        CHECK(request.topic() == "resource.status");
        bus.respond(request, status_payload);
      }
    }
    bus.fail(journal, ENODATA, "the daemon stops");
  });
  CHECK(outcome.status == 1);
  CHECK(outcome.err == "resourcectl: the daemon stops\n");
  CHECK(outcome.out.find("8 nodes, 8 cores, 0 gpus; 8 online, 0 allocated\n") != std::string::npos);
  CHECK(outcome.out.find(" online\n") != std::string::npos);
  CHECK(outcome.out.find(" alloc\n") == std::string::npos);
}

TEST_CASE_FIXTURE(ProgramFixture, "a refusal ends it, and so does an answer that is none") {
  const auto refused =
      run_with({"status", "--watch"}, [&] { bus.fail(receive(bus, "resource.journal"), EPERM, "no right"); });
  CHECK(refused.err == "resourcectl: no right\n");
  const auto broken = run_with({"status", "--watch"}, [&] {
    bus.respond(receive(bus, "resource.journal"), R"({"events":[],"last":7})", true);
    bus.respond(receive(bus, "resource.journal"), none, true);
    bus.respond(receive(bus, "resource.status"), R"({"R":1})");
  });
  CHECK(broken.status == 1);
  CHECK(broken.err.starts_with("resourcectl: the daemon's answer"));
}

}  // namespace
}  // namespace resourced::test
