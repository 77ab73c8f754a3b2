// The scheduler with the input of its user and its acquisition: lines and callbacks in, JSON out
#include "docs/examples/fifo_scheduler/scheduler.hpp"

#include <cerrno>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::fifo {

using text::IdSet;

namespace {

using Json = nlohmann::ordered_json;

rset::ResourceSet four_nodes(const char* hosts = "n[0-3]") {
  return rset::ResourceSet({{IdSet::range(0, 3), IdSet::range(0, 1), {}}}, text::Hostlist::parse(hosts));
}

struct Stand {
  Stand() { scheduler.on_resources(four_nodes(), IdSet::range(0, 3)), said.clear(); }

  /// Gives the scheduler these lines, and returns its output; allocations are reduced to their hosts.
  std::vector<std::string> say(std::initializer_list<const char*> lines) {
    for (const char* line : lines) scheduler.command(line);
    return take();
  }
  /// Returns the output since the last call, such as that for callbacks.
  std::vector<std::string> take() {
    scheduler.schedule();
    std::vector<std::string> lines;
    for (Json& object : said) {
      if (object.contains("R")) object["R"] = object["R"]["execution"]["nodelist"][0];
      lines.push_back(object.dump());
    }
    said.clear();
    return lines;
  }

  WallTime now = wall_time(1000);
  std::vector<Json> said;
  Scheduler scheduler{[this](std::string_view line) { said.push_back(Json::parse(line)); },
                      [this] { return now; }};
};

using Lines = std::vector<std::string>;

TEST_CASE("first come, first served: who does not fit yet holds back who would") {
  Stand stand;
  CHECK(stand.say({"slot=3/node", "slot=2/node", "core=1", "", "  # a comment"}) ==
        Lines{R"({"id":1,"R":"n[0-2]"})", R"({"id":2,"wait":"too little is up and free"})",
              R"({"id":3,"wait":"2 is first"})"});
  CHECK(stand.say({"free 1"}) == Lines{R"({"free":1})", R"({"id":2,"R":"n[0-1]"})", R"({"id":3,"R":"n2"})"});
}

TEST_CASE("a request that waits can be withdrawn, and who is behind it moves on") {
  Stand stand;
  CHECK(stand.say({"slot=3/node", "slot=2/node", "slot=1/node", "free 2"}).back() == R"({"id":3,"R":"n3"})");
}

TEST_CASE("only what holds or waits can be freed") {
  Stand stand;
  const Lines said = stand.say(
      {"core=1", "free 2", "free 1", "free 1", "free", "free -1", "free 1x", "free 99999999999999999999"});
  REQUIRE(said.size() == 8);
  CHECK(said[1] == R"({"error":"free: \"2\" holds nothing and does not wait"})");
  CHECK(said[2] == R"({"free":1})");
  for (const std::size_t i : {3U, 4U, 5U, 6U, 7U}) CHECK(said[i].starts_with(R"({"error":)"));
}

TEST_CASE("what can never be served, or is no request, is denied at once") {
  Stand stand;
  const std::string core = R"({"resources":[{"type":"core","count":1}],"attributes":{"system":)";
  const std::string long_duration = core + R"({"duration":"1h"}}})";
  const std::string unknown_operator = core + R"({"constraints":{"propertie":[]}}}})";
  const Lines said = stand.say({"slot=5/node", "slot=1/core=3", "slot=1/memory=1", "slot=1/", "{",
                                R"({"attributes":{}})", "core=1 where fast", "core=1 where (",
                                R"({"resources":1,"attributes":{"system":{"duration":1}}})",
                                long_duration.c_str(), unknown_operator.c_str()});
  REQUIRE(said.size() == 11);
  CHECK(said[0] == R"({"id":1,"denied":"needs 5 nodes, the inventory has 4"})");
  for (const std::string& line : said) CHECK(line.find(R"("denied":)") != std::string::npos);
  CHECK(stand.say({"core=1"}) == Lines{R"({"id":12,"R":"n0"})"});
}

TEST_CASE("a jobspec is heard for its resources, constraints and duration") {
  Stand stand;
  stand.scheduler.command(
      R"({"version":1,"resources":[{"type":"slot","label":"a","count":2,"with":[{"type":"core","count":1}]}],)"
      R"("tasks":[{"command":["app"],"slot":"a","count":{"per_slot":1}}],)"
      R"("attributes":{"system":{"duration":60,"constraints":{"hostlist":["n3"]}}}})");
  REQUIRE(stand.said.size() == 1);
  CHECK(stand.said[0]["R"].dump() ==
        R"({"version":1,"execution":{"R_lite":[{"rank":"3","children":{"core":"0-1"}}],)"
        R"("nodelist":["n3"],"nslots":2,"starttime":1000.0,"expiration":1060.0}})");
}

TEST_CASE("changes are told and followed") {
  Stand stand;
  stand.scheduler.on_down({1, 2});
  CHECK(stand.take() == Lines{R"({"down":"1-2"})"});
  CHECK(stand.say({"slot=3/node"}) == Lines{R"({"id":1,"wait":"too little is up and free"})"});
  stand.scheduler.on_up({2});
  CHECK(stand.take() == Lines{R"({"up":"2"})", R"({"id":1,"R":"n[0,2-3]"})"});

  stand.scheduler.on_property_add("fast", {0, 1});
  CHECK(stand.take() == Lines{R"({"property-add":{"fast":"0-1"}})"});
  CHECK(stand.say({"core=1 where fast"}) == Lines{R"({"id":2,"wait":"too little is up and free"})"});
  stand.scheduler.on_up({1});
  CHECK(stand.take() == Lines{R"({"up":"1"})", R"({"id":2,"R":"n1"})"});

  stand.now = wall_time(2000);
  stand.scheduler.on_expiration(wall_time(1500));
  CHECK(stand.say({"core=1"}) ==
        Lines{R"({"expiration":1500.0})", R"({"id":3,"wait":"the resources have expired"})"});
  stand.scheduler.on_expiration(wall_time(3000));
  CHECK(stand.take() == Lines{R"({"expiration":3000.0})", R"({"id":3,"R":"n1"})"});
}

TEST_CASE("who waits is denied when the inventory can no longer serve it") {
  Stand stand;
  stand.scheduler.on_property_add("fast", {0});
  stand.say({"slot=1/node where fast", "slot=4/node", "core=1 where fast", "core=1"});
  stand.scheduler.on_shrink({3});
  CHECK(stand.take() ==
        Lines{R"({"shrink":"3"})", R"({"id":2,"denied":"needs 4 nodes, the inventory has 3"})"});
  stand.scheduler.on_property_remove("fast", {0});
  CHECK(stand.take() == Lines{R"({"property-remove":{"fast":"0"}})",
                              R"({"id":3,"denied":"no target matches the constraint"})",
                              R"({"id":4,"R":"n1"})"});
}

TEST_CASE("while the daemon is away nothing is given out; what is held then is known by its host") {
  Stand stand;
  CHECK(stand.say({"slot=1/node where host:n0", "slot=1/node where host:n1"}) ==
        Lines{R"({"id":1,"R":"n0"})", R"({"id":2,"R":"n1"})"});
  stand.scheduler.on_lost(Error(ECONNRESET, "gone"));
  CHECK(stand.take() == Lines{R"({"lost":"gone"})"});
  CHECK(stand.say({"free 1", "slot=9/node", "slot=3/node", "slot=1/node"}) ==
        Lines{R"({"free":1})", R"({"id":3,"wait":"the daemon is away"})",
              R"({"id":4,"wait":"the daemon is away"})", R"({"id":5,"wait":"the daemon is away"})"});

  // The held host was rank 1 and is rank 3 now.
  stand.scheduler.on_resources(four_nodes("n3,n2,n0,n1"), IdSet::range(0, 3));
  const Lines said = stand.take();
  REQUIRE(said.size() == 3);
  CHECK(said[0] == R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})");
  CHECK(said[1] == R"({"id":3,"denied":"needs 9 nodes, the inventory has 4"})");
  CHECK(said[2] == R"({"id":4,"R":"n[3,2,0]"})");
  CHECK(stand.say({"free 2"}) == Lines{R"({"free":2})", R"({"id":5,"R":"n1"})"});
}

TEST_CASE("an error of the acquisition is the end") {
  Stand stand;
  CHECK_FALSE(stand.scheduler.error());
  stand.scheduler.on_error(Error(EBUSY, "held by another"));
  CHECK(stand.scheduler.error()->errnum() == EBUSY);
}

client::AcquisitionOptions with_ledger() {
  client::AcquisitionOptions options;
  options.ledger = true;
  options.lease = std::nullopt;
  return options;
}

/// A scheduler with the ledger of a daemon that answers when it is told to.
class LedgerStand {
 public:
  /// The first response after a connection has these allocations.
  explicit LedgerStand(const std::vector<client::Allocation>& allocations = {}) {
    scheduler_.record_in(acquisition_.ledger());
    first_ = connect(allocations);
  }
  [[nodiscard]] const Lines& first() const { return first_; }

  Lines connect(const std::vector<client::Allocation>& allocations = {}) {
    stream_ = bus_.receive(connection_);
    Json listed = Json::array();
    for (const client::Allocation& one : allocations)
      listed.push_back(
          {{"id", one.id}, {"partition", one.partition}, {"R", Json::parse(one.resources.encode())}});
    bus_.respond(stream_,
                 Json{{"resources", Json::parse(four_nodes().encode())},
                      {"up", "0-3"},
                      {"allocations", listed},
                      {"sequence", ++sequence_}}
                     .dump(),
                 true);
    wire::pump(connection_, [&] { return acquisition_.state() == client::Acquisition::State::held; });
    return take();
  }
  /// The connection is lost with all answers.
  void lose() {
    bus_.close();
    wire::pump(connection_,
               [&] { return acquisition_.state() == client::Acquisition::State::lost && pending() == 0; });
    bus_.open();
    calls_.clear();
    (void)take();
  }
  /// Ends the acquisition.
  void evict() {
    bus_.fail(stream_, ECONNABORTED, "evicted");
    wire::pump(connection_, [&] { return scheduler_.error().has_value(); });
  }
  /// Tells of changes in the acquire stream.
  void tell(Json news) {
    news["sequence"] = ++sequence_;
    bus_.respond(stream_, news.dump(), true);
    wire::pump(connection_, [this, before = said_.size()] { return said_.size() > before; });
  }
  void command(const char* line) { scheduler_.command(line); }
  /// What was asked of the ledger and not answered: the id and hosts of each alloc, the id of each free.
  Lines asked(std::initializer_list<const char*> lines = {}) {
    for (const char* line : lines) scheduler_.command(line);
    scheduler_.schedule();
    while (calls_.size() < pending()) calls_.push_back(bus_.receive(connection_));
    Lines texts;
    for (const wire::Frames& call : calls_) {
      const Json payload = Json::parse(call.payload());
      const auto id = payload["id"].get<std::string>();
      texts.push_back(call.topic() == "resource.free"
                          ? "free " + id
                          : id + " " + payload["R"]["execution"]["nodelist"][0].get<std::string>());
    }
    said_.clear();
    return texts;
  }
  /// Answer the oldest request, and return the output.
  Lines grant() {
    return answer([&](const wire::Frames& call) {
      bus_.respond(call, Json{{"sequence", ++sequence_}}.dump());
    });
  }
  Lines refuse(int errnum) {
    return answer([&](const wire::Frames& call) { bus_.fail(call, errnum, "so it is"); });
  }
  Lines take() {
    scheduler_.schedule();
    Lines lines;
    for (Json& object : std::exchange(said_, {})) {
      if (object.contains("R")) object["R"] = object["R"]["execution"]["nodelist"][0];
      lines.push_back(object.dump());
    }
    return lines;
  }

 private:
  [[nodiscard]] std::size_t pending() const { return acquisition_.ledger().pending().size(); }
  Lines answer(const std::function<void(const wire::Frames&)>& send) {
    const wire::Frames call = calls_.at(0);
    calls_.erase(calls_.begin());
    const std::size_t before = pending();
    send(call);
    wire::pump(connection_, [&] { return pending() < before; });
    return take();
  }

  test::TempDir directory_;
  wire::FakeBus bus_{"ipc://" + directory_.file("bus")};
  client::Connection connection_{"ipc://" + directory_.file("bus")};
  std::vector<Json> said_;
  Scheduler scheduler_{[this](std::string_view line) { said_.push_back(Json::parse(line)); },
                       [] { return wall_time(1000); }};
  client::Acquisition acquisition_{connection_, scheduler_, with_ledger()};
  wire::Frames stream_;
  std::vector<wire::Frames> calls_;
  unsigned sequence_ = 0;
  Lines first_;
};

TEST_CASE("an allocation that an operator has freed is free") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=4/node"}) == Lines{"1 n[0-3]"});
  stand.grant();
  CHECK(stand.asked({"free 1"}) == Lines{"free 1"});
  CHECK(stand.refuse(EPERM) == Lines{R"({"error":"free: 1: so it is"})"});
  CHECK(stand.asked({"free 1"}) == Lines{"free 1"});
  CHECK(stand.refuse(ENOENT) == Lines{R"({"free":1})"});
  CHECK(stand.asked({"slot=4/node"}) == Lines{"2 n[0-3]"});
  CHECK(stand.grant() == Lines{R"({"id":2,"R":"n[0-3]"})"});
  stand.tell({{"freed", {{{"partition", ""}, {"id", "1"}}, {{"partition", ""}, {"id", "2"}}}}});
  CHECK(stand.take() == Lines{R"({"free":2})"});
}

TEST_CASE("a job is freed once its allocation is answered") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=1/node"}) == Lines{"1 n0"});
  stand.command("free 1");
  CHECK(stand.take() ==
        Lines{R"({"error":"free: 1: allocation 1: wait for the answer to an earlier change"})"});
  stand.grant();
  CHECK(stand.asked({"free 1"}) == Lines{"free 1"});
}

TEST_CASE("jobs whose alloc was lost with the connection are served in their order") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=1/node", "slot=1/node", "slot=1/node"}) == Lines{"1 n0", "2 n1", "3 n2"});
  stand.lose();
  stand.connect();
  CHECK(stand.asked() == Lines{"1 n0", "2 n1", "3 n2"});
}

TEST_CASE("no job overtakes one whose alloc was lost with the connection") {
  LedgerStand stand;
  stand.asked({"slot=2/node"});
  stand.grant();
  CHECK(stand.asked({"slot=2/node", "slot=2/node", "free 1"}) == Lines{"2 n[2-3]", "free 1"});
  stand.lose();
  CHECK(stand.connect() ==
        Lines{R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})", R"({"free":1})"});
  CHECK(stand.asked() == Lines{"2 n[2-3]", "free 1", "3 n[0-1]"});
  CHECK(stand.grant() == Lines{R"({"id":2,"R":"n[2-3]"})"});
  CHECK(stand.grant().empty());
}

TEST_CASE("an allocation of another program that is gone is free, without a word") {
  LedgerStand stand({client::Allocation{"other", four_nodes()}});
  CHECK(stand.asked({"slot=4/node"}).empty());
  stand.lose();
  CHECK(stand.connect() == Lines{R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})"});
  CHECK(stand.asked() == Lines{"1 n[0-3]"});
}

TEST_CASE("an allocation of another partition holds its resources, and is left alone") {
  client::Allocation other{"7", four_nodes().copy_ranks(IdSet::range(0, 1))};
  other.partition = "night";
  LedgerStand stand({other});
  CHECK(stand.first() == Lines{R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})"});
  CHECK(stand.asked({"free 7", "slot=1/node"}) == Lines{"1 n2"});
}

TEST_CASE("a job whose target was drained meanwhile gets others, in its turn") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=1/node", "slot=4/node"}) == Lines{"1 n0"});
  SUBCASE("the refusal comes before the change") {
    CHECK(stand.refuse(EHOSTDOWN) == Lines{R"({"id":1,"wait":"so it is"})"});
    CHECK(stand.asked().empty());
    stand.tell({{"down", "0"}});
  }
  SUBCASE("the change comes first") {
    stand.tell({{"down", "0"}});
    CHECK(stand.refuse(EHOSTDOWN) == Lines{R"({"down":"0"})", R"({"id":1,"wait":"so it is"})"});
  }
  SUBCASE("the target has been removed") {
    CHECK(stand.refuse(EINVAL) == Lines{R"({"id":1,"wait":"so it is"})"});
    stand.tell({{"down", "0"}, {"shrink", "0"}});
  }
  CHECK(stand.asked() == Lines{"1 n1"});
}

TEST_CASE("a job that the ledger refuses again and again is put aside in the end, and not denied") {
  LedgerStand stand;
  int errnum = 0;
  SUBCASE("targets that are drained") { errnum = EHOSTDOWN; }
  SUBCASE("properties that are old") { errnum = ESTALE; }
  SUBCASE("an R that is wrong") { errnum = EINVAL; }
  stand.command("slot=1/node");
  Lines last;
  for (int refusals = 0; refusals < 8; ++refusals) {
    REQUIRE(stand.asked().size() == 1);
    stand.tell({{"up", "0"}});
    last = stand.refuse(errnum);
  }
  CHECK(last.back() == R"({"id":1,"aside":"so it is"})");
  CHECK(stand.asked().empty());
}

TEST_CASE("once the acquisition has ended no request is denied") {
  LedgerStand stand;
  stand.evict();
  stand.command("slot=1/node");
  CHECK(stand.take() == Lines{R"({"id":1,"wait":"the daemon is away"})"});
}

TEST_CASE("what a change of the targets does not explain is put aside at once") {
  LedgerStand stand;
  stand.asked({"slot=1/node"});
  CHECK(stand.refuse(EBUSY) == Lines{R"({"id":1,"aside":"so it is"})"});
}

TEST_CASE("a job whose allocation is too large for the ledger is put aside, and not denied") {
  LedgerStand stand;
  stand.asked({"slot=1/node"});
  CHECK(stand.refuse(EMSGSIZE) == Lines{R"({"id":1,"aside":"so it is"})"});
  stand.asked({"core=1"});
  CHECK(stand.refuse(EDQUOT) == Lines{R"({"id":2,"aside":"so it is"})"});
}

}  // namespace
}  // namespace resourced::fifo
