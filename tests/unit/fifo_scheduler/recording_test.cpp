// The scheduler with a ledger: what it asks of the daemon, and what it makes of the answers and of the
// stream.
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
#include "docs/examples/fifo_scheduler/scheduler.hpp"
#include "stand.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::fifo {

using text::IdSet;

namespace {

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
  [[nodiscard]] bool is_refused() const { return scheduler_.is_refused(); }
  void retry() { scheduler_.retry(); }
  /// The requests of the ledger that are not answered: the id and hosts of each alloc with what it frees, the
  /// id of each free, the id and the new end of each update.
  Lines asked(std::initializer_list<const char*> lines = {}) {
    for (const char* line : lines) scheduler_.command(line);
    scheduler_.schedule();
    while (received() < pending()) calls_.push_back(bus_.receive(connection_));
    Lines texts;
    for (const wire::Frames& call : calls_) {
      const Json payload = Json::parse(call.payload());
      const auto id = payload["id"].get<std::string>();
      if (call.topic() == "resource.free") {
        texts.push_back("free " + id);
      } else if (call.topic() == "resource.alloc-update") {
        texts.push_back("prolong " + id + " to " + payload["expiration"].dump());
      } else {
        const std::string freed =
            payload.contains("free") ? "free " + payload["free"].at(0)["id"].get<std::string>() + ", " : "";
        texts.push_back(freed + id + " " + payload["R"]["execution"]["nodelist"][0].get<std::string>());
      }
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
  /// The numbers of allocations in changes without an answer, and in those of them that the bus has received.
  [[nodiscard]] std::size_t pending() const { return acquisition_.ledger().pending().size(); }
  [[nodiscard]] std::size_t received() const {
    std::size_t allocations = calls_.size();
    for (const wire::Frames& call : calls_) {
      const Json payload = Json::parse(call.payload());
      if (payload.contains("free")) allocations += payload["free"].size();
    }
    return allocations;
  }
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
  CHECK(stand.asked({"slot=2/node", "slot=2/node", "free 1"}) == Lines{"2 n[2-3]", "free 1, 3 n[0-1]"});
  stand.lose();
  std::vector<client::Allocation> there;
  SUBCASE("before it was made") { there.push_back({"1", four_nodes().copy_ranks(IdSet::range(0, 1))}); }
  SUBCASE("after it was made") { there.push_back({"3", four_nodes().copy_ranks(IdSet::range(0, 1))}); }
  CHECK(stand.connect(there) == Lines{R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})"});
  CHECK(stand.asked() == Lines{"2 n[2-3]", "free 1, 3 n[0-1]"});
  CHECK(stand.grant() == Lines{R"({"id":2,"R":"n[2-3]"})"});
  CHECK(stand.grant() == Lines{R"({"free":1})", R"({"id":3,"R":"n[0-1]"})"});
}

TEST_CASE("a job that is freed makes room for the next one in the same transaction") {
  LedgerStand stand;
  stand.asked({"slot=4/node"});
  stand.grant();
  CHECK(stand.asked({"slot=3/node", "slot=1/node", "free 1"}) == Lines{"free 1, 2 n[0-2]"});
  SUBCASE("it is made") {
    CHECK(stand.grant() == Lines{R"({"free":1})", R"({"id":2,"R":"n[0-2]"})"});
    CHECK(stand.asked() == Lines{"3 n3"});
  }
  SUBCASE("it is refused, because of either part") {
    CHECK(stand.refuse(EHOSTDOWN).empty());
    CHECK(stand.asked() == Lines{"free 1"});
    SUBCASE("the job may be freed") { CHECK(stand.grant() == Lines{R"({"free":1})"}); }
    SUBCASE("an operator has freed the job") { CHECK(stand.refuse(ENOENT) == Lines{R"({"free":1})"}); }
    SUBCASE("the stream tells of the free first") {
      stand.tell({{"freed", {{{"partition", ""}, {"id", "1"}}}}});
      CHECK(stand.refuse(ENOENT) == Lines{R"({"free":1})"});
    }
    CHECK(stand.asked() == Lines{"2 n[0-2]", "3 n3"});
  }
}

TEST_CASE("while a job is replaced nothing else is allocated, as it may stay") {
  LedgerStand stand;
  stand.asked({"slot=2/node", "slot=2/node"});
  stand.grant();
  stand.grant();
  CHECK(stand.asked({"slot=1/node", "slot=1/node", "slot=1/node", "free 1", "free 2"}) ==
        Lines{"free 1, 3 n0", "free 2"});
  CHECK(stand.grant() == Lines{R"({"free":1})", R"({"id":3,"R":"n0"})"});
  CHECK(stand.asked() == Lines{"free 2", "4 n1"});
  CHECK(stand.grant() == Lines{R"({"free":2})"});
  CHECK(stand.asked() == Lines{"4 n1", "5 n2"});
}

TEST_CASE("a job with an end is prolonged, until a drain begins") {
  LedgerStand stand;
  const std::string job = job_of(60);
  CHECK(stand.asked({job.c_str()}) == Lines{"1 n0"});
  stand.command("prolong 1 600");
  CHECK(stand.take() == Lines{R"({"error":"prolong: 1 600: the ledger has no such job with an end"})"});
  stand.grant();
  CHECK(stand.asked({"prolong 1 600"}) == Lines{"prolong 1 to 1660.0"});
  CHECK(stand.grant() == Lines{R"({"prolonged":1,"expiration":1660.0})"});
  stand.tell({{"up", "3"}, {"scheduled", {{{"idset", "0"}, {"from", 1700.0}}}}});
  (void)stand.take();
  stand.command("prolong 1 41");
  CHECK(stand.take() == Lines{R"({"error":"prolong: 1 41: a drain begins before the new end"})"});
  CHECK(stand.asked({"prolong 1 40"}) == Lines{"prolong 1 to 1700.0"});
  CHECK(stand.refuse(EINVAL) == Lines{R"({"error":"prolong: 1 40: so it is"})"});
  for (const char* line : {"prolong", "prolong 1", "prolong 1 x", "prolong 1 0", "prolong 1 -5",
                           "prolong 1 inf", "prolong 1 5 5"}) {
    CAPTURE(line);
    stand.command(line);
    const Lines said = stand.take();
    REQUIRE(said.size() == 1);
    CHECK(said[0].ends_with(R"(: not an id and a number of seconds"})"));
  }
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

TEST_CASE("only an id in its shortest form is that of a job") {
  const auto on = [](const char* id, IdSet::Id rank) {
    return client::Allocation{id, four_nodes().copy_ranks(IdSet{rank})};
  };
  LedgerStand stand({on("1", 0), on("01", 1), on("001", 2)});
  CHECK(stand.first().size() == 2);
  CHECK(stand.asked({"slot=1/node", "free 01"}) == Lines{"2 n3", "free 1"});
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

TEST_CASE("a change of properties or of the expiration explains a refusal, too") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=1/node"}) == Lines{"1 n0"});
  SUBCASE("a property") {
    CHECK(stand.refuse(ESTALE) == Lines{R"({"id":1,"wait":"so it is"})"});
    stand.tell({{"property-add", {{"fast", "0"}}}});
  }
  SUBCASE("the expiration") {
    CHECK(stand.refuse(EINVAL) == Lines{R"({"id":1,"wait":"so it is"})"});
    stand.tell({{"expiration", 5e9}});
  }
  CHECK(stand.asked() == Lines{"1 n0"});
}

TEST_CASE("a refusal that no change explains is tried again, until the job is put aside") {
  LedgerStand stand;
  CHECK(stand.asked({"slot=4/node", "core=1"}) == Lines{"1 n[0-3]"});
  for (int refusals = 1; refusals < 8; ++refusals) {
    CHECK(stand.refuse(ESTALE) == Lines{R"({"id":1,"wait":"so it is"})"});
    CHECK(stand.is_refused());
    stand.retry();
    CHECK(stand.asked() == Lines{"1 n[0-3]"});
  }
  CHECK(stand.refuse(ESTALE) == Lines{R"({"id":1,"aside":"so it is"})"});
  CHECK_FALSE(stand.is_refused());
  CHECK(stand.asked() == Lines{"2 n0"});
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
