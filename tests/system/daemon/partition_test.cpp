// Several schedulers at once, each with a part of the inventory. Neither other schedulers nor changes of the
// properties that define the parts disturb them.
#include <csignal>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

// Three parts: 0-2 by name, 3-5 by a constraint on a property, and 6-7, the rest.
constexpr std::string_view three_parts = R"([[resource.config]]
hosts = "test[0-7]"
cores = "0-3"
[[resource.config]]
hosts = "test[3-5]"
properties = ["debug"]
[[acquire.partition]]
name = "batch"
targets = "test[0-2]"
[[acquire.partition]]
name = "debug"
constraint = "debug"
)";

/// `resourcectl acquire` of a part, as a process.
class SchedulerProcess {
 public:
  SchedulerProcess(const Cluster& cluster, const std::string& partition)
      : process_(cluster.ctl.start(partition.empty()
                                       ? std::vector<std::string>{"acquire"}
                                       : std::vector<std::string>{"acquire", "--partition", partition})) {}

  json next() { return json::parse(process_->expect_line()); }
  void kill() { process_->kill(); }

 private:
  std::unique_ptr<Process> process_;
};

std::uint32_t ask(RawClient& client, const std::string& partition) {
  return client.send("resource.acquire", {{"partition", partition}}, wire::flag_streaming);
}

TEST_SUITE_BEGIN("partition");

TEST_CASE("three schedulers hold their parts; one that is killed comes back and the others notice nothing") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  SchedulerProcess batch(cluster, "batch");
  auto debug = std::make_unique<SchedulerProcess>(cluster, "debug");
  SchedulerProcess rest(cluster, "");
  CHECK(batch.next()["up"] == "0-2");
  const json of_debug = debug->next();
  CHECK(of_debug["up"] == "3-5");
  CHECK(of_debug["resources"]["execution"]["nodelist"] == json::parse(R"(["test[3-5]"])"));
  CHECK(of_debug["resources"]["execution"]["properties"] == json::parse(R"({"debug": "3-5"})"));
  CHECK(rest.next()["up"] == "6-7");

  // A drain across two parts reaches both holders, each with its own targets, and not the third one.
  cluster.drain("2-4", "rack");
  CHECK(batch.next() == json{{"down", "2"}});
  CHECK(debug->next() == json{{"down", "3-4"}});

  debug->kill();
  RawClient client(cluster.daemon.uri());
  const Deadline deadline;
  while (client.call("resource.status").json()["partitions"]["debug"]["held"] == true) {
    REQUIRE_FALSE(deadline.passed());
  }
  cluster.undrain("3");
  debug = std::make_unique<SchedulerProcess>(cluster, "debug");
  CHECK(debug->next()["up"] == "3,5");

  // The next responses of the others have only their own changes.
  cluster.drain("0,5,7", "end");
  CHECK(batch.next() == json{{"down", "0"}});
  CHECK(debug->next() == json{{"down", "5"}});
  CHECK(rest.next() == json{{"down", "7"}});
}

TEST_CASE("a part that is held is refused by its name, and so is one that there is not") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  RawClient holder(cluster.daemon.uri());
  CHECK(holder.receive(ask(holder, "debug")).errnum == 0);

  RawClient late(cluster.daemon.uri());
  const RawResponse busy = late.receive(ask(late, "debug"));
  CHECK(busy.errnum == wire_errno::busy);
  CHECK(busy.text().find("debug") != std::string::npos);
  const RawResponse unknown = late.receive(ask(late, "nosuch"));
  CHECK(unknown.errnum == wire_errno::noent);
  CHECK(unknown.text().find("nosuch") != std::string::npos);
  CHECK(late.receive(ask(late, "batch")).errnum == 0);

  const Outcome outcome = cluster.ctl.run({"acquire", "--partition", "debug", "--count", "1"});
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("debug") != std::string::npos);
}

TEST_CASE("a property that divides the parts moves no target until the holders let go") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  const auto partition = [&] { return cluster.status()["partitions"]["debug"]; };
  CHECK(partition() == json{{"targets", "3-5"}, {"held", false}, {"waiting", ""}, {"leaving", ""}});

  auto debug = std::make_unique<RawClient>(cluster.daemon.uri());
  auto rest = std::make_unique<RawClient>(cluster.daemon.uri());
  const std::uint32_t debug_stream = ask(*debug, "debug");
  const std::uint32_t rest_stream = rest->acquire();
  CHECK(debug->receive(debug_stream).json()["up"] == "3-5");
  CHECK(rest->receive(rest_stream).json()["up"] == "6-7");
  CHECK(partition() == json{{"targets", "3-5"}, {"held", true}, {"waiting", ""}, {"leaving", ""}});

  // Target 6 joins the part and 3 leaves it. Both holders keep their targets, and receive only the changed
  // property.
  cluster.ctl.done({"property", "add", "debug", "6"});
  cluster.ctl.done({"property", "remove", "debug", "3"});
  CHECK(rest->receive(rest_stream).json() == json::parse(R"({"property-add": {"debug": "6"}})"));
  CHECK(debug->receive(debug_stream).json() == json::parse(R"({"property-remove": {"debug": "3"}})"));
  CHECK(partition() == json{{"targets", "4-6"}, {"held", true}, {"waiting", "6"}, {"leaving", "3"}});
  cluster.drain("3,6");
  CHECK(debug->receive(debug_stream).json() == json{{"down", "3"}});
  CHECK(rest->receive(rest_stream).json() == json{{"down", "6"}});
  cluster.undrain("3,6");
  CHECK(debug->receive(debug_stream).json() == json{{"up", "3"}});
  CHECK(rest->receive(rest_stream).json() == json{{"up", "6"}});

  // One holder releases its targets and acquires again: it gets its present targets, but not those that the
  // other one still holds.
  debug->send("resource.acquire-cancel", {{"matchtag", debug_stream}}, wire::flag_noresponse);
  CHECK(debug->receive(debug_stream).errnum == wire_errno::canceled);
  const std::uint32_t debug_again = ask(*debug, "debug");
  const json first = debug->receive(debug_again).json();
  CHECK(first["up"] == "4-5");
  CHECK(first["resources"]["execution"]["nodelist"] == json::parse(R"(["test[4-6]"])"));
  CHECK(partition() == json{{"targets", "4-6"}, {"held", true}, {"waiting", "6"}, {"leaving", ""}});

  // The other holder releases, too: 6 is up for the holder whose first response has listed it, and 3 belongs
  // to the rest.
  rest->send("resource.acquire-cancel", {{"matchtag", rest_stream}}, wire::flag_noresponse);
  CHECK(rest->receive(rest_stream).errnum == wire_errno::canceled);
  CHECK(debug->receive(debug_again).json() == json{{"up", "6"}});
  CHECK(partition()["waiting"] == "");
  CHECK(rest->receive(rest->acquire()).json()["up"] == "3,7");
  debug->send("resource.acquire-cancel", {{"matchtag", debug_again}}, wire::flag_noresponse);
  CHECK(debug->receive(debug_again).errnum == wire_errno::canceled);
  CHECK(debug->receive(ask(*debug, "debug")).json()["up"] == "4-6");
}

TEST_CASE(
    "a constraint that names hosts or ranks that do not exist is refused by --check and by the start alike") {
  Cluster cluster;
  CHECK(cluster.daemon.terminate() == 0);
  const auto configure = [&](const std::string& constraint) {
    cluster.daemon.configure(std::string(three_parts) +
                             "\n[[acquire.partition]]\nname = \"odd\"\nconstraint = \"" + constraint +
                             "\"\n");
  };
  const auto command = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"--config", cluster.daemon.config_file(), "--state",
                                   cluster.dir / "state"};
    words.insert(words.end(), more.begin(), more.end());
    return Process(resourced_command(words)).finish();
  };
  const std::vector<std::pair<std::string, std::string>> refusals{
      {"host:test6,test77", "constraint: unknown host: test77"},
      {"host:TEST6", "constraint: unknown host: TEST6"},
      {"not (host:test6 or not host:test77)", "constraint: unknown host: test77"},
      // This is one hostlist, as a comma separates hosts.
      {"-host:test6,-host:test7", "constraint: \"-host:test7\" cannot be the name of a node"},
      {"rank:6-77", "constraint: idset is out of range"}};
  for (const auto& [constraint, why] : refusals) {
    CAPTURE(constraint);
    configure(constraint);
    const Outcome checked = command({"--check"});
    CHECK(checked.status == 1);
    CHECK(checked.err.find(why) != std::string::npos);
    CHECK(checked.err.find(cluster.daemon.config_file().string() + ':') != std::string::npos);
    const Outcome started = command({"--listen", "ipc://" + (cluster.dir / "other.sock").string()});
    CHECK(started.status == 1);
    CHECK(started.err.find(why) != std::string::npos);
  }
  configure("host:test6 and nosuch");
  const Outcome good = command({"--check"});
  CHECK(good.status == 0);
  CHECK(good.err.find("constraint: no node has the property nosuch") != std::string::npos);
  CHECK(good.err.find("constraint: the partition odd has no nodes") != std::string::npos);
  CHECK(good.out.find("partition odd: 0 nodes (constraint host:test6 and nosuch)\n") != std::string::npos);
  CHECK(good.out.find("partition batch: 3 nodes, test[0-2]") != std::string::npos);
  configure("host:test6");
  CHECK(command({"--check"}).err.empty());
}

TEST_CASE("a property of run time that makes partitions overlap is named by --check and by the start alike") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  cluster.ctl.done({"property", "add", "fast", "1,7"});
  cluster.ctl.done({"property", "add", "other", "1"});
  CHECK(cluster.daemon.terminate() == 0);
  std::string overlapping(three_parts);
  overlapping.replace(overlapping.find("constraint = \"debug\""),
                      std::string("constraint = \"debug\"").size(), "constraint = \"fast\"");
  cluster.daemon.configure(overlapping);
  const std::string why =
      "partitions batch and debug overlap: rank 1 (test1) would be in both, because of properties that were "
      "changed "
      "at run time: change the partitions, or start with the previous ones and undo the changes: resourcectl "
      "property "
      "remove "
      "fast test1";
  const auto command = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"--config", cluster.daemon.config_file(), "--state",
                                   cluster.dir / "state"};
    words.insert(words.end(), more.begin(), more.end());
    return Process(resourced_command(words)).finish();
  };
  const Outcome checked = command({"--check"});
  CHECK(checked.status == 1);
  CHECK(checked.err.find(why) != std::string::npos);
  const Outcome started = command({"--listen", "ipc://" + (cluster.dir / "other.sock").string()});
  CHECK(started.status == 1);
  CHECK(started.err.find(why) != std::string::npos);

  // The original partitions end the conflict.
  cluster.daemon.configure(three_parts);
  cluster.daemon.start();
  const Outcome beside = command({"--check"});
  CHECK(beside.status == 0);
  CHECK(beside.err == "");
  cluster.daemon.configure(overlapping);
  CHECK(command({"--check"}).err.find(why) != std::string::npos);
  cluster.ctl.done({"property", "remove", "fast", "test1"});
  CHECK(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(overlapping);
  CHECK(command({"--check"}).status == 0);
  cluster.daemon.start();
}

TEST_CASE("status tells which targets wait to move, and whose holder has to let go") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  SchedulerProcess debug(cluster, "debug");
  SchedulerProcess rest(cluster, "");
  CHECK(debug.next()["up"] == "3-5");
  CHECK(rest.next()["up"] == "6-7");
  const std::string header = cluster.ctl.output({"status"});
  CHECK(header.find("wait") == std::string::npos);

  cluster.ctl.done({"property", "remove", "debug", "3"});
  const std::string leaves =
      "targets 3 wait to move from partition debug to the rest: the holder of partition debug must release "
      "them\n";
  CHECK(cluster.ctl.output({"status"}) == header + leaves);
  cluster.ctl.done({"property", "add", "debug", "6"});
  const std::string comes =
      "targets 6 wait to move from the rest to partition debug: the holder of the rest must release them\n";
  CHECK(cluster.ctl.output({"status"}) == header + leaves + comes);
  CHECK(cluster.ctl.output({"status", "-i", "6-7"}).ends_with(comes));
  CHECK(cluster.ctl.output({"reload"}) == "reloaded the configuration\n" + leaves + comes);

  // Output for programs has no lines about moves.
  CHECK(cluster.ctl.output({"status", "-n", "-o", "{state} {nodelist}"}) == "avail test[0-7]\n");
  CHECK(json::parse(cluster.ctl.output({"status", "--json"}))["moves"] ==
        json::parse(R"([{"ranks": "3", "from": "debug", "to": null},
                        {"ranks": "6", "from": null, "to": "debug"}])"));

  debug.kill();
  RawClient client(cluster.daemon.uri());
  const Deadline deadline;
  while (client.call("resource.status").json()["partitions"]["debug"]["held"] == true) {
    REQUIRE_FALSE(deadline.passed());
  }
  CHECK(cluster.ctl.output({"status"}) ==
        header + comes + "targets 3 wait for the holder of the rest to acquire again\n");
}

TEST_CASE("targets that nobody holds move to a partition when its scheduler acquires again") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  SchedulerProcess debug(cluster, "debug");
  CHECK(debug.next()["up"] == "3-5");
  cluster.ctl.done({"property", "add", "debug", "6"});
  CHECK(cluster.ctl.output({"status"})
            .ends_with("targets 6 wait for the holder of partition debug to acquire again\n"));
  debug.kill();
  SchedulerProcess again(cluster, "debug");
  CHECK(again.next()["up"] == "3-6");
  CHECK(cluster.ctl.output({"status"}).find("wait") == std::string::npos);
}

TEST_CASE("parts that overlap are refused at the start and when a property would make them") {
  const std::string overlapping =
      std::string(three_parts) + "[[acquire.partition]]\nname = \"wide\"\n" + "targets = \"5-6\"\n";
  TempDir dir;
  const Outcome outcome =
      Process(resourced_command({"--config", dir.write("bad.toml", overlapping), "--state", dir / "state",
                                 "--listen", "ipc://" + (dir / "bus").string()}))
          .finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  for (const char* named : {"debug", "wide", "5"}) CHECK(outcome.err.find(named) != std::string::npos);

  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  RawClient batch(cluster.daemon.uri());
  const std::uint32_t stream = ask(batch, "batch");
  batch.receive(stream);
  const json before = cluster.status();
  const RawResponse refused = cluster.operator_client.call(
      "resource.property", {{"op", "add"}, {"name", "debug"}, {"targets", "1-2,6"}});
  CHECK(refused.errnum == wire_errno::inval);
  for (const char* named : {"batch", "debug", "1-2"}) CHECK(refused.text().find(named) != std::string::npos);
  CHECK(cluster.status() == before);

  // A reload with overlapping parts is refused, too.
  cluster.daemon.configure(std::string(three_parts).replace(three_parts.find("test[3-5]"), 9, "test[2-5]"));
  const Outcome reload = cluster.ctl.run({"reload"});
  CHECK(reload.status == 1);
  CHECK(reload.err.find("debug") != std::string::npos);
  CHECK(cluster.status() == before);
  CHECK(batch.settle().empty());

  // A refused change is not recorded, either.
  cluster.daemon.configure(three_parts);
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.status()["R"] == before["R"]);
}

TEST_CASE("schedulers are muted, and one that acquires afterwards is told of changes") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  RawClient muted(cluster.daemon.uri());
  muted.receive(ask(muted, "debug"));
  CHECK(cluster.ctl.run({"acquire-mute"}).out == "muted the present schedulers\n");
  RawClient later(cluster.daemon.uri());
  const std::uint32_t stream = ask(later, "batch");
  later.receive(stream);
  CHECK(cluster.ctl.run({"drain", "0,3"}).status == 0);
  CHECK(later.receive(stream).json()["down"] == "0");
  CHECK(muted.settle().empty());
  CHECK(cluster.ctl.run({"acquire-mute", "--json"}).out == "{\"change\":\"acquire-mute\"}\n");
}

TEST_CASE("a scheduler that hangs is evicted, the next one acquires, and the first is told by whom and why") {
  Cluster cluster(DaemonOptions{.config = std::string(three_parts)});
  const auto hangs = cluster.ctl.start({"acquire", "--partition", "debug"});
  CHECK(json::parse(hangs->expect_line())["up"] == "3-5");
  hangs->signal(SIGSTOP);
  const Outcome nobody = cluster.ctl.run({"evict", "--partition", "batch"});
  CHECK(nobody.status == 1);
  CHECK(nobody.err == "resourcectl: no scheduler has acquired partition batch; acquired are: debug\n");
  const Outcome evicted = cluster.ctl.run({"evict", "--partition", "debug", "--reason", "it hangs"});
  CHECK(evicted.status == 0);
  CHECK(evicted.out.starts_with("evicted the scheduler of partition debug: "));
  RawClient next(cluster.daemon.uri());
  CHECK(next.receive(ask(next, "debug")).json()["up"] == "3-5");
  hangs->signal(SIGCONT);
  const Outcome told = hangs->finish();
  CHECK(told.status == 1);
  CHECK(told.err == fmt::format("resourcectl: evicted by uid {}: it hangs\n", getuid()));

  // The log has it after a restart as well.
  cluster.daemon.kill();
  cluster.daemon.start();
  const std::string log = cluster.ctl.run({"eventlog", "--export"}).out;
  const auto name = log.find(R"("name":"evict")");
  REQUIRE(name != std::string::npos);
  const auto begin = log.rfind('\n', name) + 1;
  const std::string event = log.substr(begin, log.find('\n', name) - begin);
  CHECK(event.find(R"("idset":"3-5")") != std::string::npos);
  CHECK(event.find(R"("partition":"debug")") != std::string::npos);
  CHECK(event.find(R"("reason":"it hangs")") != std::string::npos);
  CHECK(event.find(fmt::format(R"("by":{{"userid":{}}})", getuid())) != std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
