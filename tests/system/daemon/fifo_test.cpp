// The example scheduler with the real daemon: lines in, JSON Lines out. The test records which job holds
// which core of which host, and checks each allocation against that.
#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.hpp"
#include "harness/process.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

const std::string program = RESOURCED_BIN "/fifo_scheduler";

/// A fifo_scheduler whose standard input is a FIFO.
class Fifo {
 public:
  Fifo(const Cluster& cluster, const std::string& name, const std::string& more = "") {
    const std::string path = cluster.dir / name;
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo " + path);
    // Opened for reading and writing, so that neither side blocks in open().
    input_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (input_ < 0) throw std::runtime_error("open " + path);
    const std::string command = "exec \"$0\" --uri \"$1\" " + more + " < \"$2\"";
    process_ = std::make_unique<Process>(
        std::vector<std::string>{"/bin/sh", "-c", command, program, cluster.daemon.uri(), path});
  }
  ~Fifo() { close_input(); }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;

  void send(const std::string& line) const {
    const std::string text = line + '\n';
    if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("a pipe took less than a line");
    }
  }
  void close_input() {
    if (input_ >= 0) ::close(std::exchange(input_, -1));
  }
  json next() { return json::parse(process_->expect_line()); }
  /// Sends a line and returns the first message after it.
  json ask(const std::string& line) {
    send(line);
    return next();
  }
  Process& process() { return *process_; }

 private:
  int input_ = -1;
  std::unique_ptr<Process> process_;
};

/// Starts a scheduler after the previous one was killed. Retries, as the daemon must notice the lost
/// connection before it accepts the next acquire.
std::unique_ptr<Fifo> start_next(const Cluster& cluster, const std::string& name, json& first,
                                 const std::string& more = "") {
  const Deadline deadline;
  for (int attempt = 0; !deadline.passed(); ++attempt) {
    auto fifo = std::make_unique<Fifo>(cluster, name + std::to_string(attempt), more);
    if (const auto line = fifo->process().read_line()) {
      first = json::parse(*line);
      return fifo;
    }
  }
  throw Timeout("the resources were not freed");
}

class Book {
 public:
  /// Records the allocation of a message, and returns its hosts.
  std::set<std::string> enter(const json& message) {
    CAPTURE(message.dump());
    REQUIRE(message.contains("R"));
    const unsigned id = message["id"];
    const json& execution = message["R"]["execution"];
    std::set<std::string> hosts;
    std::set<unsigned> ranks;
    for (const json& entry : execution["R_lite"]) ranks.merge(ids(entry["rank"].get<std::string>()));
    for (const json& entry : execution["R_lite"]) {
      for (const unsigned rank : ids(entry["rank"].get<std::string>())) {
        const std::string host = rank_names.at(rank);
        hosts.insert(host);
        for (const unsigned core : ids(entry["children"]["core"].get<std::string>())) {
          CHECK(core < 4);
          CHECK(holders_.emplace(std::pair(host, core), id).second);
        }
      }
    }
    CHECK(execution["nslots"] >= 1);
    return hosts;
  }
  void release(const json& message) {
    REQUIRE(message.contains("free"));
    std::erase_if(holders_, [&](const auto& held) { return held.second == message["free"]; });
  }
  [[nodiscard]] std::size_t held() const { return holders_.size(); }

  /// The host of each rank in the present numbering of the daemon.
  std::map<unsigned, std::string> rank_names;

 private:
  std::map<std::pair<std::string, unsigned>, unsigned> holders_;
};

using Hosts = std::set<std::string>;

std::map<unsigned, std::string> in_order() {
  std::map<unsigned, std::string> names;
  for (unsigned rank = 0; rank < 8; ++rank) names[rank] = "test" + std::to_string(rank);
  return names;
}

TEST_SUITE_BEGIN("fifo");

TEST_CASE("a job that waits starts when an operator frees the allocation of another one") {
  Cluster cluster;
  Fifo fifo(cluster, "jobs");
  CHECK(fifo.next().contains("acquired"));
  CHECK(fifo.ask("slot=6/node").contains("R"));
  CHECK(fifo.ask("slot=2/node").contains("R"));
  CHECK(fifo.ask("slot=3/node")["wait"] == "too little is up and free");
  // An operator frees two nodes of the first job, and then the rest of it.
  cluster.operator_client.call("resource.force-free", {{"id", "1"}, {"ranks", "2-3"}});
  cluster.ctl.done({"free", "2"});
  CHECK(fifo.next() == json{{"free", 2}});
  CHECK(fifo.next()["R"]["execution"]["nodelist"] == json::parse(R"(["test[2-3,6]"])"));
  cluster.ctl.done({"free", "1"});
  CHECK(fifo.next() == json{{"free", 1}});
}

TEST_CASE("a day in the life of a scheduler") {
  Cluster cluster(std::string(eight_nodes) + "properties = [\"+inner\", \"batch\"]\n");
  Book book;
  book.rank_names = in_order();
  auto fifo = std::make_unique<Fifo>(cluster, "morning");
  CHECK(fifo->next() == json::parse(R"({"acquired": {"nodes": 8, "cores": 32, "gpus": 0}, "up": "0-7"})"));

  // Morning: jobs arrive until the cluster is nearly full.
  const json first = fifo->ask("slot=2/node");
  CHECK(book.enter(first) == Hosts{"test0", "test1"});
  CHECK(first["R"]["execution"]["nslots"] == 2);
  CHECK(first["R"]["execution"]["properties"] == json::parse(R"({"batch": "0-1"})"));
  CHECK(book.enter(fifo->ask("slot=3/core=3 where hosts:test[2-6]")) == Hosts{"test2", "test3", "test4"});
  CHECK(book.enter(fifo->ask("core=3 where +inner")) == Hosts{"test2", "test3", "test4"});
  CHECK(book.held() == 20);
  CHECK(fifo->ask("slot=9/node")["denied"] == "needs 9 nodes, the inventory has 8");

  // The operator drains a node under load and two free ones. Its jobs continue.
  cluster.drain("1,5-6");
  CHECK(fifo->next() == json{{"down", "1,5-6"}, {"cause", {{"drained", "1,5-6"}}}});
  CHECK(fifo->ask("slot=2/node")["wait"] == "too little is up and free");
  CHECK(fifo->ask("core=1")["wait"] == "5 is first");
  book.release(fifo->ask("free 3"));
  book.release(fifo->ask("free 1"));
  // Node 1 is free but still down, so the two nodes are 0 and 7.
  CHECK(book.enter(fifo->next()) == Hosts{"test0", "test7"});
  CHECK(book.enter(fifo->next()) == Hosts{"test2"});
  CHECK(fifo->ask("slot=1/node")["wait"] == "too little is up and free");
  cluster.undrain("1");
  CHECK(fifo->next() == json{{"up", "1"}});
  CHECK(book.enter(fifo->next()) == Hosts{"test1"});

  // Noon: the inventory itself changes.
  cluster.ctl.done({"property", "add", "fast", "test5"});
  CHECK(fifo->next() == json::parse(R"({"property-add": {"fast": "5"}})"));
  CHECK(fifo->ask("slot=1/node where fast")["wait"] == "too little is up and free");
  cluster.ctl.done({"expiration", "set", "4102444800"});
  CHECK(fifo->next() == json{{"expiration", 4102444800.0}});
  cluster.undrain("5-6");
  CHECK(fifo->next() == json{{"up", "5-6"}});
  const json fast = fifo->next();
  CHECK(book.enter(fast) == Hosts{"test5"});
  CHECK(fast["R"]["execution"]["expiration"] == 4102444800.0);
  CHECK(fast["R"]["execution"]["properties"] == json::parse(R"({"batch": "5", "fast": "5"})"));

  // The daemon is killed, and restarts with its hosts in reverse order. Held resources must not be allocated
  // again: only test6 and single cores on test3 and test4 are free.
  cluster.daemon.kill();
  CHECK(fifo->next().contains("lost"));
  // The allocation is freed once the daemon is back.
  fifo->send("free 8");
  CHECK(fifo->ask("slot=2/node")["wait"] == "the daemon is away");
  cluster.daemon.configure(R"([[resource.config]]
hosts = "test7,test6,test5,test4,test3,test2,test1,test0"
cores = "0-3"
)");
  cluster.daemon.start();
  for (unsigned rank = 0; rank < 8; ++rank) book.rank_names[rank] = "test" + std::to_string(7 - rank);
  CHECK(fifo->next()["up"] == "0-7");
  book.release(fifo->next());
  CHECK(book.enter(fifo->next()) == Hosts{"test5", "test6"});
  CHECK(book.enter(fifo->ask("slot=2/core")) == Hosts{"test3", "test4"});
  CHECK(book.held() == 32);
  CHECK(fifo->ask("core=1")["wait"] == "too little is up and free");
  book.release(fifo->ask("free 2"));
  CHECK(book.enter(fifo->next()) == Hosts{"test4"});

  // After a normal end of the daemon the scheduler waits for it, too.
  CHECK(cluster.daemon.terminate() == 0);
  CHECK(fifo->next()["lost"] == "the resource module was unloaded");
  cluster.daemon.start();
  CHECK(fifo->next()["up"] == "0-7");
  book.release(fifo->ask("free 5"));
  CHECK(book.enter(fifo->ask("slot=2/node")) == Hosts{"test0", "test7"});

  // Evening: the scheduler is killed. Its successor takes over the allocations; the queue is gone.
  CHECK(fifo->ask("slot=8/node").contains("wait"));
  fifo->process().kill();
  const std::size_t held = book.held();
  json hello;
  fifo = start_next(cluster, "evening", hello);
  CHECK(hello["up"] == "0-7");
  Book evening;
  evening.rank_names = book.rank_names;
  std::vector<unsigned> jobs;
  while (evening.held() < held) {
    json recovered = fifo->next();
    recovered["id"] = recovered.at("recovered");
    evening.enter(recovered);
    jobs.push_back(recovered["id"]);
  }
  CHECK(evening.held() == held);
  CHECK(fifo->ask("slot=8/node")["wait"] == "too little is up and free");
  for (const unsigned id : jobs) evening.release(fifo->ask("free " + std::to_string(id)));
  CHECK(evening.enter(fifo->next()).size() == 8);

  fifo->process().signal(SIGTERM);
  CHECK(fifo->process().wait() == 0);
}

/// A jobspec for a node for so many seconds.
std::string node_for(int seconds) {
  return json{{"resources", {{{"type", "node"}, {"count", 1}}}},
              {"attributes", {{"system", {{"duration", seconds}}}}}}
      .dump();
}

TEST_CASE("jobs end before a drain begins, are prolonged until then, and replaced in one step") {
  Cluster cluster;
  Fifo fifo(cluster, "jobs");
  fifo.next();
  const auto host_of = [](const json& message) { return message.at("R")["execution"]["nodelist"][0]; };
  cluster.ctl.done({"drain", "--from", "+1h", "test[0-5]", "power"});
  // The scheduler may take the first line before it is told: it has an answer after the next change.
  cluster.drain("7");
  CHECK(fifo.next()["cause"] == json{{"drained", "7"}});
  cluster.undrain("7");
  CHECK(fifo.next() == json{{"up", "7"}});
  const json first = fifo.ask(node_for(3000));
  CHECK(host_of(first) == "test0");
  CHECK(host_of(fifo.ask(node_for(4000))) == "test6");
  CHECK(host_of(fifo.ask("slot=1/node")) == "test7");
  CHECK(fifo.ask("slot=1/node")["wait"] == "a drain begins before its end");
  CHECK(fifo.ask("core=1")["wait"] == "4 is first");

  const double end = first["R"]["execution"]["expiration"];
  CHECK(fifo.ask("prolong 1 300") == json{{"prolonged", 1}, {"expiration", end + 300}});
  const json listed = json::parse(cluster.operator_client.call("resource.allocations").payload);
  CHECK(listed["allocations"][0]["id"] == "1");
  CHECK(listed["allocations"][0]["expiration"] == end + 300);
  CHECK(fifo.ask("prolong 1 600") == json{{"error", "prolong: 1 600: a drain begins before the new end"}});
  CHECK(fifo.ask("prolong 3 600") ==
        json{{"error", "prolong: 3 600: the ledger has no such job with an end"}});

  CHECK(fifo.ask("free 3") == json{{"free", 3}});
  CHECK(host_of(fifo.next()) == "test7");
  std::vector<json> changes;
  for (const json& event : history(cluster.operator_client, {{"allocations", true}}))
    if (event["name"] == "free" || event["name"] == "alloc") changes.push_back(event);
  REQUIRE(changes.size() == 5);
  CHECK(changes[3]["name"] == "free");
  CHECK(changes[3]["context"]["ids"] == json::array({"3"}));
  CHECK(changes[4]["context"]["allocations"][0]["id"] == "4");
  CHECK(changes[3]["timestamp"] == changes[4]["timestamp"]);
}

TEST_CASE("a scheduler that waits its turn gets the resources when the other one ends") {
  Cluster cluster;
  auto first = std::make_unique<Fifo>(cluster, "first");
  first->next();
  CHECK(first->ask("slot=1/node").contains("R"));
  Fifo second(cluster, "second", "--wait");
  const auto waits = [&] {
    return json::parse(cluster.operator_client.call("resource.peers").payload)
               .value("waiting", json())
               .size() == 1;
  };
  for (const Deadline deadline; !waits();)
    if (deadline.passed()) throw Timeout("nobody waits");
  first->process().kill();
  CHECK(second.next().contains("acquired"));
  CHECK(second.next()["recovered"] == 1);
}

TEST_CASE("hosts that leave for good take their part of the queue with them") {
  Cluster cluster;
  Fifo fifo(cluster, "input");
  fifo.next();
  fifo.ask("slot=7/node");
  CHECK(fifo.ask("slot=8/node").contains("wait"));
  cluster.ctl.done({"shrink", "test7"});
  CHECK(fifo.next() == json{{"shrink", "7"}});
  CHECK(fifo.next()["denied"] == "needs 8 nodes, the inventory has 7");
  CHECK(fifo.ask("free 1") == json{{"free", 1}});
  CHECK(fifo.ask("slot=7/node").contains("R"));
}

TEST_CASE("the schedulers of two partitions both run their job 1") {
  Cluster cluster(std::string(eight_nodes) +
                  "[[acquire.partition]]\nname = \"night\"\ntargets = \"test[6-7]\"\n");
  Fifo day(cluster, "day");
  CHECK(day.next()["up"] == "0-5");
  Fifo night(cluster, "night", "--partition night");
  CHECK(night.next()["up"] == "6-7");
  const auto host_of = [](const json& message) {
    CAPTURE(message.dump());
    REQUIRE(message.contains("R"));
    CHECK(message["id"] == 1);
    return message["R"]["execution"]["nodelist"][0];
  };
  CHECK(host_of(day.ask("slot=1/node")) == "test0");
  CHECK(host_of(night.ask("slot=1/node")) == "test6");
  const std::vector<std::string> names{"allocations", "-n", "-o", "{id} {partition} {nodelist}"};
  CHECK(cluster.ctl.run(names).out == "1  test0\n1 night test6\n");
  CHECK(day.ask("free 1") == json::parse(R"({"free": 1})"));
  CHECK(cluster.ctl.run(names).out == "1 night test6\n");

  // The next scheduler of a partition gets the allocations of its own.
  night.process().kill();
  json first;
  const auto next = start_next(cluster, "late", first, "--partition night");
  CHECK(first["up"] == "6-7");
  CHECK(next->next()["recovered"] == 1);

  // An operator names the partition.
  const auto refused = cluster.ctl.run({"free", "1"});
  CHECK(refused.status == 1);
  CHECK(refused.err == "resourcectl: name the partition of allocation 1, one of: \"night\"\n");
  CHECK(cluster.ctl.run({"free", "--partition", "night", "1"}).out ==
        "freed 1 allocation: 1 of partition night\n");
  CHECK(cluster.ctl.run(names).out.empty());
}

TEST_CASE("a second scheduler is refused, and so are a wrong command line and a missing file") {
  Cluster cluster;
  Fifo fifo(cluster, "input");
  fifo.next();
  const auto outcome_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {program, "--uri", cluster.daemon.uri()});
    return Process(arguments).finish();
  };
  const Outcome refused = outcome_of({});
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err.starts_with("fifo_scheduler: "));
  CHECK(outcome_of({"--no-such-option"}).status == 2);
  CHECK(outcome_of({"--help"}).status == 0);
  const Outcome missing = outcome_of({"--file", cluster.dir / "nothing"});
  CHECK(missing.status == 1);
  CHECK(missing.err.find("No such file") != std::string::npos);
}

TEST_CASE("requests come from a file, too, and the end of the input is the end only if asked") {
  Cluster cluster;
  const std::string file = cluster.dir.write("requests", "slot=8/node\n# the last line has no end\ncore=1");
  const Outcome outcome =
      Process({program, "--uri", cluster.daemon.uri(), "--file", file, "--exit-at-eof"}).finish();
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 3);
  CHECK(outcome.out.find(R"({"id":2,"wait":"too little is up and free"})") != std::string::npos);

  // The previous scheduler released the resources before it exited. Its job goes on.
  Fifo fifo(cluster, "input");
  fifo.next();
  CHECK(fifo.next()["recovered"] == 1);
  CHECK(fifo.ask("free 1") == json{{"free", 1}});
  CHECK(fifo.ask("slot=8/node").contains("R"));
  fifo.close_input();
  cluster.drain("3");
  CHECK(fifo.next() == json{{"down", "3"}, {"cause", {{"drained", "3"}}}});
}

/// The ledger: the id of the holder of each core of each host.
std::map<std::pair<std::string, unsigned>, std::string> ledger_of(Cluster& cluster) {
  const std::map<unsigned, std::string> names = in_order();
  std::map<std::pair<std::string, unsigned>, std::string> holders;
  const json list = json::parse(cluster.operator_client.call("resource.allocations").payload)["allocations"];
  for (const json& allocation : list) {
    for (const json& entry : allocation["R"]["execution"]["R_lite"]) {
      for (const unsigned rank : ids(entry["rank"].get<std::string>())) {
        for (const unsigned core : ids(entry["children"]["core"].get<std::string>()))
          CHECK(holders.emplace(std::pair(names.at(rank), core), allocation["id"]).second);
      }
    }
  }
  return holders;
}

TEST_CASE(
    "a scheduler that is killed in the middle of its work again and again neither loses nor doubles an "
    "allocation") {
  Cluster cluster;
  constexpr int kills = 12;
  std::set<unsigned> printed;
  for (int round = 0; round < kills; ++round) {
    json hello;
    const auto fifo = start_next(cluster, "round" + std::to_string(round) + ".", hello);
    REQUIRE(hello.contains("acquired"));
    // Every allocation that was printed is recovered, and others that were recorded but not printed before
    // the kill.
    std::set<unsigned> recovered;
    for (const auto& [core, id] : ledger_of(cluster)) recovered.insert(static_cast<unsigned>(std::stoul(id)));
    for (std::size_t i = 0; i < recovered.size(); ++i)
      CHECK(recovered.contains(fifo->next().at("recovered")));
    for (const unsigned id : printed) CHECK(recovered.contains(id));
    // Free some, ask for more than there is, and kill the scheduler after a number of answers.
    int asked = 0;
    printed = recovered;
    for (const unsigned id : recovered) {
      if (id % 2 == 0) continue;
      fifo->send("free " + std::to_string(id));
      printed.erase(id);
      ++asked;
    }
    for (int i = 0; i < 20; ++i) {
      fifo->send("core=" + std::to_string(1 + i % 3));
      ++asked;
    }
    for (int answers = 0; answers < 1 + (7 * round) % asked; ++answers) {
      const json line = fifo->next();
      if (line.contains("R")) printed.insert(line["id"].get<unsigned>());
    }
    fifo->process().kill();
  }
}

TEST_CASE("changes are made once, however often the daemon is killed before it answers") {
  Cluster cluster;
  Fifo fifo(cluster, "input");
  CHECK(fifo.next().contains("acquired"));
  std::set<unsigned> held;
  unsigned last = 0;
  for (int round = 0; round < 10; ++round) {
    std::set<unsigned> unanswered = held;
    for (const unsigned id : held) fifo.send("free " + std::to_string(id));
    for (int i = 0; i < 12; ++i) {
      fifo.send("core=1");
      unanswered.insert(++last);
    }
    const auto read = [&] {
      const json line = fifo.next();
      CAPTURE(line.dump());
      REQUIRE_FALSE((line.contains("denied") || line.contains("error")));
      const bool is_free = line.contains("free");
      if (!is_free && !line.contains("R")) return;
      const unsigned id = line[is_free ? "free" : "id"];
      CHECK(unanswered.erase(id) == 1);
      CHECK((is_free ? held.erase(id) : std::size_t{held.insert(id).second}) == 1);
    };
    // The scheduler is at another point of its input in each round.
    for (int lines = 0; lines < round; ++lines) read();
    cluster.daemon.kill();
    cluster.daemon.start();
    while (!unanswered.empty()) read();
    std::set<std::string> listed;
    for (const unsigned id : held) listed.insert(std::to_string(id) + '\n');
    std::string text;
    for (const std::string& line : listed) text += line;
    CHECK(cluster.ctl.run({"allocations", "-n", "-o", "{id}"}).out == text);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
