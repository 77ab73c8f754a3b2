// Lines of the daemon's log for changes: their text, when they are written, and their limit.
#include "daemon/service/change_log.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/time.hpp"

namespace resourced::daemon::service {
namespace {

/// A user id without an account.
const module::Actor nobody = module::ByUser{4000000000};

engine::Record drained(engine::Sequence sequence, const std::string& hosts, std::optional<std::string> reason,
                       module::Actor by) {
  engine::Record record;
  record.sequence = sequence;
  record.hosts = text::Hostlist::parse(hosts);
  record.event = {wall_time(1), module::DrainEvent{{std::move(reason)}, {}, record.hosts}, std::move(by)};
  return record;
}

engine::Record seen(engine::Sequence sequence, const std::string& hosts, module::EventBody body,
                    std::optional<module::Actor> by = std::nullopt) {
  engine::Record record;
  record.sequence = sequence;
  record.hosts = text::Hostlist::parse(hosts);
  record.event = {wall_time(1), std::move(body), std::move(by)};
  return record;
}

struct Written final : Deferral {
  std::vector<ChangeLine> lines;
  std::deque<std::function<void()>> deferred;
  ChangeLog log{[this](const ChangeLine& line) { lines.push_back(line); }, *this};
  void later(Seconds /*pause*/, std::function<void()> work) override { deferred.push_back(std::move(work)); }
  void post(std::string_view /*name*/, std::function<void()> work) override {
    deferred.push_back(std::move(work));
  }
  /// Lets the time pass for which lines wait to be combined with others.
  void pass() {
    const auto work = std::move(deferred.front());
    deferred.pop_front();
    work();
  }
};

TEST_CASE("what agents tell within a second is one line for each kind") {
  Written written;
  written.log.add(seen(1, "n1", module::TorpidEvent{}), steady_time(1));
  written.log.add(seen(2, "n[2-3]", module::TorpidEvent{}), steady_time(1));
  written.log.add(seen(3, "n7", module::OnlineEvent{}, module::ByHost{"n7"}), steady_time(1));
  written.log.add(seen(4, "n2", module::TorpidEvent{}), steady_time(1));
  CHECK(written.lines.empty());
  REQUIRE(written.deferred.size() == 1);
  written.pass();
  REQUIRE(written.lines.size() == 2);
  CHECK(text_of(written.lines[0]) == "3 nodes torpid: n[1-3]");
  CHECK(written.lines[0].event == "torpid");
  CHECK(written.lines[0].hosts == "n[1-3]");
  CHECK_FALSE(written.lines[0].by);
  CHECK(text_of(written.lines[1]) == "1 node online: n7");
  written.log.add(seen(5, "n9", module::OfflineEvent{}), steady_time(1));
  REQUIRE(written.deferred.size() == 1);
  written.pass();
  CHECK(text_of(written.lines[2]) == "1 node offline: n9");
  CHECK(written.deferred.empty());
}

TEST_CASE("what the daemon does by itself has a line, and times have theirs") {
  Written written;
  written.log.add(seen(1, "n1", module::DrainEvent{{"flapping"}, {}, {}}), steady_time(1));
  written.log.add(seen(2, "n1", module::UndrainEvent{}), steady_time(1));
  written.log.add(
      seen(3, "n2", module::ScheduleEvent{{"power", wall_time(1767229200)}, {}, {}, wall_time(1767225600)},
           nobody),
      steady_time(1));
  written.log.add(seen(3, "n2", module::CancelEvent{{}, {}, wall_time(1767225600)}, nobody), steady_time(1));
  // The start of a daemon has no line here: other log lines tell of it.
  written.log.add(seen(4, "n[1-2]", module::RestartEvent{}), steady_time(1));
  REQUIRE(written.lines.size() == 4);
  CHECK(text_of(written.lines[0]) == "drain n1 by the daemon: flapping");
  CHECK_FALSE(written.lines[0].by);
  CHECK(text_of(written.lines[1]) == "undrain n1 by the daemon");
  CHECK(text_of(written.lines[2]) ==
        "drain-schedule n2 from 2026-01-01T00:00:00Z until 2026-01-01T01:00:00Z by uid 4000000000: power");
  CHECK(text_of(written.lines[3]) == "drain-cancel n2 from 2026-01-01T00:00:00Z by uid 4000000000");
}

TEST_CASE("a line says what happened, where, by whom and why") {
  Written written;
  written.log.add(drained(1, "n[1-2]", "bad dimm", nobody), steady_time(1));
  REQUIRE(written.lines.size() == 1);
  CHECK(text_of(written.lines[0]) == "drain n[1-2] by uid 4000000000: bad dimm");
  CHECK(written.lines[0].event == "drain");
  CHECK(written.lines[0].hosts == "n[1-2]");
  CHECK(name_of(*written.lines[0].by) == "uid 4000000000");
  CHECK(written.lines[0].reason == "bad dimm");
  written.log.add(drained(2, "n3", std::nullopt, module::ByKey{"login1"}), steady_time(1));
  REQUIRE(written.lines.size() == 2);
  CHECK(text_of(written.lines[1]) == "drain n3 by key login1");
  written.log.add(drained(3, "n3", std::nullopt, module::ByUser{0}), steady_time(1));
  CHECK(text_of(written.lines[2]) == "drain n3 by root (uid 0)");

  engine::Record reload;
  reload.sequence = 4;
  module::DefineEvent define;
  define.method = module::DefineMethod::reload;
  reload.event = {wall_time(1), define, module::BySignal{"HUP"}};
  written.log.add(reload, steady_time(1));
  CHECK(text_of(written.lines[3]) == "resource-define by signal HUP");
}

TEST_CASE("no text of a client adds a line or a field, or makes one long") {
  Written written;
  written.log.add(drained(1, "n1", "a\nMESSAGE=b\x1b[2J", module::ByKey{"k\n<0>x"}), steady_time(1));
  written.log.add(drained(2, "n1", std::string(1 << 20, 'x'), module::ByHost{"n1"}), steady_time(1));
  REQUIRE(written.lines.size() == 2);
  for (const ChangeLine& line : written.lines) {
    for (const std::string& text : {text_of(line), name_of(*line.by), line.reason, line.hosts, line.event}) {
      CHECK(text.find_first_of("\n\r\x1b") == std::string::npos);
      CHECK(text.size() <= 1024);
    }
  }
  CHECK(text_of(written.lines[0]) == "drain n1 by key k <0>x: a MESSAGE=b\\u001b[2J");
}

TEST_CASE("lines are limited, the next one says how many are missing, and agents do not hide users") {
  Written written;
  engine::Sequence last = 0;
  for (int i = 0; i < 5000; ++i)
    written.log.add(drained(++last, "n1", std::nullopt, module::ByHost{"n1"}), steady_time(1));
  written.log.add(drained(++last, "n2", std::nullopt, nobody), steady_time(1));
  CHECK(written.lines.size() == 1001);
  CHECK(text_of(written.lines.back()) == "drain n2 by uid 4000000000");
  // Each further second allows ten more lines.
  written.lines.clear();
  for (int i = 0; i < 50; ++i)
    written.log.add(drained(++last, "n1", std::nullopt, module::ByHost{"n1"}), steady_time(2));
  REQUIRE(written.lines.size() == 10);
  CHECK(text_of(written.lines[0]) == "drain n1 by host n1 (4000 more since the last such line)");
  CHECK(text_of(written.lines[1]) == "drain n1 by host n1");
}

TEST_CASE("without a log nothing is kept") {
  Written none;
  ChangeLog log(nullptr, none);
  log.add(drained(1, "n1", std::nullopt, nobody), steady_time(1));
  CHECK(none.deferred.empty());
}

}  // namespace
}  // namespace resourced::daemon::service
