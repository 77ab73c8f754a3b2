// The log in an instance's KVS: its commits, when events are durable, and how far the journal goes back.
#include "daemon/instance/kvs_log.hpp"

#include <deque>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace resourced;
using namespace resourced::daemon;
using namespace resourced::daemon::instance;
using nlohmann::json;
using text::IdSet;

namespace {

/// A log whose commits wait until the test answers them.
struct Stand {
  explicit Stand(std::vector<KeptState::Line> history = {}, std::size_t most = 100)
      : log(std::move(history), most, {.has_readers = true}) {
    log.begin({[this](const json& request, std::function<void(const Error*)> done) {
                 commits.push_back(request);
                 answers.push_back(std::move(done));
               },
               [this](std::function<void()> work) { posted.push_back(std::move(work)); },
               [this](log::Sequence last) { committed = last; },
               [this](const Error& error) { failure = error.what(); },
               [this](const std::string& name, const std::string&) { told += name + ";"; },
               [] { return std::string("R"); }, [] { return std::string("P"); }});
  }

  void append(const char* name, bool hidden = false) {
    log::Record record;
    record.sequence = log.last_sequence() + 1;
    record.timestamp = wall_time(100.0 + static_cast<double>(record.sequence));
    record.name = name;
    record.text = fmt::format("line{}", record.sequence);
    if (hidden) record.audience = log::Audience::nobody;
    log.append(std::move(record));
  }
  void run() {
    while (!posted.empty()) {
      const auto work = std::move(posted.front());
      posted.pop_front();
      work();
    }
  }
  void answer(const Error* error = nullptr) {
    const auto done = std::move(answers.front());
    answers.pop_front();
    done(error);
    run();
  }
  /// The changes of a commit: `key=value`, or `key+=value`.
  std::string changes(std::size_t commit) const {
    std::string text;
    for (const json& op : commits.at(commit).at("ops")) {
      const std::string value = kvs_value("key", {{"val", op.at("dirent")}});
      text += op.at("key").get<std::string>() + (op.at("flags") == 32 ? "+=" : "=") + value + ";";
    }
    return text;
  }
  log::HistoryStart start(log::EventFilter filter = {}, std::size_t most = 100) {
    log::HistoryStart found;
    log.ask(log::FindStart{std::move(filter), most,
                           [&](log::HistoryStart answer) { found = std::move(answer); }});
    run();
    return found;
  }
  std::string page(log::EventFilter filter, log::Sequence from, log::Sequence to, std::size_t limit = 100) {
    std::string text;
    const auto take = [&](const log::HistoryPage& answer) {
      for (const auto& event : answer.events) text += event.text + ";";
      text += fmt::format("next {}{}", answer.next, answer.has_gap ? " gap" : "");
    };
    log.ask(log::ReadPage{std::move(filter), from, to, limit, take});
    run();
    return text;
  }

  KvsLog log;
  std::vector<json> commits;
  std::deque<std::function<void(const Error*)>> answers;
  std::deque<std::function<void()>> posted;
  log::Sequence committed = 0;
  std::string failure;
  std::string told;
};

std::vector<KeptState::Line> lines(std::initializer_list<double> times) {
  std::vector<KeptState::Line> history;
  for (const double time : times) {
    const auto number = history.size() + 1;
    history.push_back({wall_time(time), fmt::format("old{}", number), IdSet{static_cast<IdSet::Id>(number)}});
  }
  return history;
}

TEST_CASE(
    "an event is durable once the KVS has answered, and events that come meanwhile share the next commit") {
  Stand stand;
  stand.append("drain");
  stand.run();
  REQUIRE(stand.commits.size() == 1);
  CHECK(stand.changes(0) == "resource.eventlog+=line1\n;");
  CHECK(stand.commits[0].at("flags") == 0);
  CHECK(stand.committed == 0);
  CHECK(stand.told.empty());
  stand.append("undrain");
  stand.append("drain");
  stand.run();
  CHECK(stand.commits.size() == 1);
  stand.answer();
  CHECK(stand.told == "drain;");
  CHECK(stand.committed == 1);
  REQUIRE(stand.commits.size() == 2);
  CHECK(stand.changes(1) == "resource.eventlog+=line2\nline3\n;resourced.actors+=line2\n;");
  stand.answer();
  CHECK(stand.committed == 3);
  CHECK(stand.told == "drain;undrain;drain;");
}

TEST_CASE("liveness and hidden events are not written, but wait for what was before them") {
  Stand stand;
  stand.append("restart");
  stand.append("online");
  stand.run();
  CHECK(stand.commits.empty());
  CHECK(stand.committed == 2);
  stand.append("drain");
  stand.append("offline");
  stand.append("shrink", true);
  stand.run();
  CHECK(stand.committed == 2);
  stand.answer();
  CHECK(stand.committed == 5);
  CHECK(stand.told.find("shrink") == std::string::npos);
}

TEST_CASE(
    "R stands before its definition, and with each change of it; changed properties have a key of their "
    "own") {
  Stand stand;
  stand.append("resource-define");
  stand.run();
  CHECK(stand.changes(0) == "resource.R=R;resourced.properties=P;resource.eventlog+=line1\n;");
  stand.answer();
  stand.append("resource-update");
  stand.run();
  CHECK(stand.changes(1) == "resource.R=R;resource.eventlog+=line2\n;");
  stand.answer();
  stand.append("property-update");
  stand.run();
  CHECK(stand.changes(2) == "resource.R=R;resourced.properties=P;");
}

TEST_CASE("after a refused commit nothing is durable any more") {
  Stand stand;
  stand.append("drain");
  stand.run();
  const Error error(ENOSPC, "full");
  stand.answer(&error);
  CHECK(stand.failure == "full");
  stand.append("drain");
  stand.run();
  CHECK(stand.commits.size() == 1);
  CHECK(stand.committed == 0);
  CHECK(stand.told.empty());
}

TEST_CASE("a value of the KVS is whole base64") {
  const auto read = [](const char* data) { return kvs_value("some.key", {{"val", {{"data", data}}}}); };
  CHECK(read("").empty());
  CHECK(read("YQ==") == "a");
  CHECK(read("YWI=") == "ab");
  CHECK(read("YWJj") == "abc");
  for (const char* data :
       {"Y", "YQ", "YQ=", "YWJ", "YWJjY", "YQ==YQ==", "YW?j", "YWJj\n", "====", "YQ===", "YR=="}) {
    CAPTURE(data);
    CHECK_THROWS_WITH_AS((void)read(data), "kvs.lookup: some.key: not whole base64", Error);
  }
}

TEST_CASE("the last commit is on disk, after all others") {
  Stand stand;
  bool done = false;
  stand.append("drain");
  stand.run();
  stand.log.finish(KvsChange{"checkpoint.resource", "C"}, [&] { done = true; });
  stand.run();
  stand.answer();
  CHECK_FALSE(done);
  REQUIRE(stand.commits.size() == 2);
  CHECK(stand.changes(1) == "checkpoint.resource=C;");
  CHECK(stand.commits[1].at("flags") == 4);
  stand.answer();
  CHECK(done);
  Stand idle;
  done = false;
  idle.log.finish(std::nullopt, [&] { done = true; });
  idle.run();
  CHECK(done);
  CHECK(idle.commits.empty());
}

TEST_CASE("the journal begins with the lines of the KVS") {
  Stand stand(lines({1, 2, 2, 3}));
  CHECK(stand.log.last_sequence() == 4);
  CHECK(stand.log.last_timestamp() == wall_time(3));
  CHECK(stand.start().first == 1);
  CHECK_FALSE(stand.start().truncated);
  CHECK(stand.page({}, 1, 4) == "old1;old2;old3;old4;next 5");
  CHECK(stand.page({}, 2, 4, 2) == "old2;old3;next 4");
  log::EventFilter filter;
  filter.since = wall_time(2);
  CHECK(stand.start(filter).first == 2);
  CHECK(stand.page(filter, 1, 4) == "old2;old3;old4;next 5");
  // The reader knows one of the two events at this time.
  filter.known = 1;
  CHECK(stand.start(filter).first == 3);
  filter.known = 2;
  CHECK(stand.start(filter).first == 4);
  filter.known = 9;
  CHECK(stand.start(filter).first == 4);
}

TEST_CASE("a reader of an earlier process learns that events which it has not seen are dropped") {
  Stand stand(lines({1, 2, 2, 2, 3, 4}), 3);
  // The journal goes back to the event at time 3.
  REQUIRE(stand.start().first == 5);
  const auto resumed = [&](std::optional<WallTime> since, std::size_t known, const char* ranks = nullptr) {
    log::EventFilter filter;
    filter.since = since;
    filter.resumes = true;
    filter.known = known;
    if (ranks != nullptr) {
      auto targets = std::make_shared<log::EventTargets>();
      targets->ranks = IdSet::parse(ranks);
      filter.targets = targets;
    }
    const log::HistoryStart start = stand.start(filter);
    if (!start.failure) {
      CHECK_FALSE(start.truncated);
      return start.first;
    }
    CHECK(start.failure->errnum() == EOVERFLOW);
    return log::Sequence{0};
  };
  CHECK(resumed(wall_time(1), 1) == 0);
  CHECK(resumed(wall_time(2), 2) == 0);
  CHECK(resumed(wall_time(2), 3) == 5);
  CHECK(resumed(wall_time(3), 1) == 6);
  // Dropped events of ranks that the reader did not ask for do not concern it.
  CHECK(resumed(wall_time(1), 1, "1,5-6") == 5);
  CHECK(resumed(wall_time(2), 1, "3,5-6") == 5);
  CHECK(resumed(wall_time(2), 1, "3-4") == 0);
  // The reader has received no event of the log.
  CHECK(resumed(std::nullopt, 0) == 0);
  CHECK(resumed(wall_time(3), 0) == 5);
  CHECK(resumed(std::nullopt, 0, "5") == 5);
}

TEST_CASE("journal-max counts the event that tells of dropped ones") {
  Stand stand(lines({1, 2, 3, 4}), 4);
  CHECK_FALSE(stand.start({}, 4).truncated);
  stand.append("online");
  stand.run();
  // The last three of five events are left, after one that reports the loss.
  auto start = stand.start({}, 4);
  CHECK(start.first == 3);
  CHECK(start.truncated == wall_time(2));
  CHECK(stand.page({}, 1, 4) == "next 1 gap");
  CHECK(stand.page({}, 3, 4) == "old3;old4;next 5");
  stand.log.set_most(2);
  start = stand.start({}, 2);
  CHECK(start.first == 5);
  CHECK(start.truncated == wall_time(4));
}

}  // namespace
