// resourcectl slurm: its output, its requests, and what it refuses. tests/interop/slurm compares it with
// Slurm.
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "program_fixture.hpp"

using namespace resourced;
using nlohmann::json;
using test::ProgramFixture;

TEST_SUITE("slurm") {
  TEST_CASE("an inventory is printed, and control characters in it are escapes") {
    const auto outcome =
        test::run({"slurm", "import-inventory", "-"}, "NodeName=n CPUs=2 State=DOWN Reason=a\x1b[2Jb\n");
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out ==
          "[[resource.config]]\nhosts = \"n\"\ncores = \"0-1\"\n\n"
          "# Out of service, to be drained once the daemon runs:\n"
          "#   resourcectl drain n -- 'a\\u001b[2Jb'\n");
  }

  TEST_CASE("an inventory of several files is refused with the file and the line") {
    const test::TempDir directory;
    const std::string main = directory.file("slurm.conf");
    std::ofstream(main) << "ClusterName=c\nInclude nodes\n";
    CHECK(test::run({"slurm", "import-inventory", main}).err ==
          "resourcectl: " + main + ":2: " + directory.file("nodes") + ": No such file or directory\n");
    std::ofstream(directory.file("nodes")) << "\nNodeName=n[\n";
    const auto outcome = test::run({"slurm", "import-inventory", main});
    CHECK(outcome.status == 1);
    CHECK(outcome.err.starts_with("resourcectl: " + directory.file("nodes") + ":2: "));
    CHECK(outcome.out.empty());
  }

  TEST_CASE("a dry run prints the drains as commands, and needs no daemon") {
    const test::TempDir directory;
    const auto outcome =
        test::run({"--uri", "ipc://" + directory.file("nosuch"), "slurm", "import-drains", "--dry-run"},
                  "n[1-2]|drained|root|2026-11-30T03:21:44|it's $(off)\nn3|down|slurm|Unknown|none\n");
    CHECK(outcome.status == 0);
    CHECK(outcome.out ==
          "resourcectl drain --update 'n[1-2]' -- 'it'\\''s $(off)'\nresourcectl drain --update n3\n");
    CHECK(outcome.err.starts_with("resourcectl: not known whether these nodes can be drained: "));
    CHECK(outcome.err.ends_with(
        "\nresourcectl: not carried over: n[1-2] drained in Slurm, by root at 2026-11-30T03:21:44\n"
        "resourcectl: not carried over: n3 down in Slurm, by slurm at Unknown\n"));
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a dry run names in one line all nodes that a real one would refuse") {
    const auto dry_run = [&](const std::string& lines) {
      const std::string file = directory.file("drains");
      std::ofstream(file) << lines;
      return run_with({"slurm", "import-drains", "--dry-run", file},
                      [&] { bus.respond(bus.receive(), test::status_payload); });
    };
    const auto fit = dry_run("node[1-2]|drained|root|now|fan\n");
    CHECK(fit.status == 0);
    CHECK(fit.out == "resourcectl drain --update 'node[1-2]' -- fan\n");
    // Target 6 is excluded.
    const auto refused = dry_run(
        "node[5-6]|drained|root|now|fan\nnode1,other|down|root|now|fan\nnode[8-9]|down|root|now|fan\n");
    CHECK(refused.status == 1);
    CHECK(refused.out.starts_with("resourcectl drain --update 'node[5-6]' -- fan\n"));
    CHECK(
        refused.err.ends_with("\nresourcectl: nothing would be drained: unknown hosts: other,node[8-9]; "
                              "excluded here, and cannot be drained: node6\n"));
    CHECK(dry_run("node9|down|root|now|fan\n").err.ends_with("drained: unknown host: node9\n"));
    CHECK(dry_run("node6|down|root|now|fan\n")
              .err.ends_with("nothing would be drained: excluded here, and cannot be drained: node6\n"));
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(ProgramFixture, "an update names hosts alone: no selectors, and no ranks in a list") {
    for (const std::string nodes : {"", "node1,property:x", "rank:1"}) {
      CAPTURE(nodes);
      const auto outcome = test::run({"slurm", "update", "nodename=" + nodes, "state=drain", "reason=x"});
      CHECK(outcome.status == 1);
      CHECK(outcome.err.starts_with("resourcectl: "));
    }
    for (const std::string nodes : {"node1,all", "node1,2"}) {
      CAPTURE(nodes);
      const auto outcome = run_with({"slurm", "update", "nodename=" + nodes, "state=drain", "reason=x"},
                                    [&] { bus.respond(bus.receive(), test::status_payload); });
      CHECK(outcome.err.find("unknown host: ") != std::string::npos);
    }
  }

  TEST_CASE("an update takes each key once") {
    const auto outcome = test::run({"slurm", "update", "nodename=n0", "NodeName=n1", "state=resume"});
    CHECK(outcome.status == 2);
    CHECK(outcome.err.starts_with("resourcectl: slurm update: nodename= is there twice"));
  }

  TEST_CASE_FIXTURE(ProgramFixture, "an update sends the request of drain or undrain") {
    CHECK(change_output(
              {"slurm", "update", "NodeName=node[1-2]", "state=Drain", "reason=node3 is meant"},
              "resource.drain",
              {{"targets", "node[1-2]"}, {"reason", "node3 is meant"}, {"mode", "force-overwrite"}}) ==
          "drained 2 nodes: node[1-2] (node3 is meant)\n");
  }

  TEST_CASE("an update refuses all other words, and names them") {
    const auto refusal = [](std::vector<std::string> words) {
      words.insert(words.begin(), {"slurm", "update"});
      const auto outcome = test::run(words);
      CHECK(outcome.status == 2);
      return outcome.err;
    };
    CHECK(refusal({"nodename=n1", "state=drain"}) ==
          "resourcectl: slurm update: state=drain needs reason=TEXT\n");
    CHECK(refusal({"nodename=n1", "reason=x"}) ==
          "resourcectl: slurm update: nodename= and state= are required\n");
    CHECK(refusal({"state=drain", "reason=x"}) ==
          "resourcectl: slurm update: nodename= and state= are required\n");
    CHECK(refusal({"nodename=n1", "weight=3"}) ==
          "resourcectl: slurm update: expected nodename=, state= or reason=, found \"weight=3\"\n");
    CHECK(refusal({"nodename"}) ==
          "resourcectl: slurm update: expected nodename=, state= or reason=, found \"nodename\"\n");
    CHECK(refusal({"nodename=n1", "state=DOWN", "reason=x"}) ==
          "resourcectl: slurm update: no state \"down\" here: drain takes nodes out of service, resume and "
          "undrain "
          "return them, and agents tell which are down\n");
  }
}
