// resourcectl hostlist: how lists of hosts are read, combined, narrowed and printed.
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "core/time.hpp"
#include "run_program.hpp"

using namespace resourced;
using nlohmann::json;

namespace {

struct HostlistCase {
  std::vector<std::string> arguments;
  std::string out;
};

test::Outcome run_hostlist(std::vector<std::string> arguments, const std::string& input = {}) {
  CAPTURE(json(arguments).dump());
  arguments.insert(arguments.begin(), "hostlist");
  return test::run(arguments, input);
}

void check_hostlist(const std::vector<HostlistCase>& cases) {
  for (const auto& [arguments, out] : cases) {
    CAPTURE(json(arguments).dump());
    const auto outcome = run_hostlist(arguments);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == out);
    CHECK(outcome.err.empty());
  }
}

}  // namespace

TEST_SUITE("hostlist") {
  TEST_CASE("lists are arguments, standard input, or both") {
    const std::string input = "n1\n\n  n[2-3]  n7\r\n";
    CHECK(run_hostlist({}, input).out == "n[1-3,7]\n");
    CHECK(run_hostlist({"-"}, input).out == "n[1-3,7]\n");
    CHECK(run_hostlist({"stdin", "n9"}, input).out == "n[1-3,7,9]\n");
    CHECK(run_hostlist({"n0", "-", "-"}, input).out == "n[0-3,7]\n");
    CHECK(run_hostlist({"-i", "-", "n[2-5]"}, input).out == "n[2-3]\n");
    check_hostlist({{{"n1 n2", "n3"}, "n[1-3]\n"}});
    const auto bad = run_hostlist({}, "n1\nn[3-1]\n");
    CHECK(bad.status == 1);
    CHECK(bad.err.find("n[3-1]") != std::string::npos);
  }

  TEST_CASE("a terminal is not read unless it is named") {
    const auto run_at_terminal = [](std::vector<const char*> argv) {
      argv.insert(argv.begin(), {"resourcectl", "hostlist"});
      std::istringstream in("n1\n");
      std::ostringstream out;
      std::ostringstream err;
      const int status = cli::run(
          static_cast<int>(argv.size()), argv.data(), in, out, err, true,
          [] { return wall_time(1700000000); }, cli::default_timeout, true);
      return test::Outcome{status, out.str(), err.str()};
    };
    const auto refused = run_at_terminal({});
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(
        refused.err ==
        "resourcectl: hostlist: EXPR is missing, and standard input, which is read instead, is a terminal\n");
    CHECK(run_at_terminal({"-"}).out == "n1\n");
    CHECK(run_at_terminal({"n2"}).out == "n2\n");
  }

  TEST_CASE("nothing is printed for an empty list, but its count") {
    check_hostlist({{{""}, ""}, {{"-e", ""}, ""}, {{"-c", ""}, "0\n"}});
    CHECK(run_hostlist({}).out.empty());
  }

  TEST_CASE("lists are combined") {
    check_hostlist({
        {{"-i", "n3,n1,n1", "n[1-4]"}, "n[1,3]\n"},
        {{"--intersect", "n[1-6]", "n[2-9]", "n[0-3]"}, "n[2-3]\n"},
        {{"-i", "n1", "m1"}, ""},
        {{"-m", "n[1-9]", "n3", "n[5-6],m1"}, "n[1-2,4,7-9]\n"},
        {{"--minus", "n1,n2,n1,n1", "n1", "n1"}, "n[2,1]\n"},
        {{"-m", "n1,m1,n1,m1", "m1,n9,n1,n1,n1", "m1"}, ""},
        {{"-m", "n[8-11],n9", "m[0-20],n[9-10]", "z"}, "n[8,11,9]\n"},
        {{"-X", "n[1-3]", "n[2-5]"}, "n[1,4-5]\n"},
        {{"--xor", "n[1-3]", "n[2-5]", "n5"}, "n[1,4]\n"},
        {{"-u", "n3,n1", "n1"}, "n[1,3]\n"},
        {{"--union", "n3,n1", "n1"}, "n[1,3]\n"},
    });
    // One list alone stays as it is.
    for (const char* option : {"-i", "-m", "-X"}) check_hostlist({{{option, "n3,n1,n1"}, "n[3,1,1]\n"}});
    CHECK(run_hostlist({"-i", "-m", "n1"}).status == 2);
    CHECK(run_hostlist({"-i", "-X", "n1"}).status == 2);
    CHECK(run_hostlist({"-m", "-X", "n1"}).status == 2);
  }

  TEST_CASE("--exclude takes hosts, and positions if no host matches") {
    check_hostlist({
        {{"-x", "n1", "n1,n2,n1"}, "n2\n"},
        {{"--exclude", "n[2-3],z", "n[1-4]"}, "n[1,4]\n"},
        {{"-x", "n1,0", "n1,n2,n1"}, "n2\n"},
        {{"-x", "0", "n1,n2,n1"}, "n[2,1]\n"},
        {{"-x", "0-1,7", "n[1-4]"}, "n[3-4]\n"},
        {{"-x", "[0,2]", "n[1-4]"}, "n[2,4]\n"},
        {{"-x", "1", "[1-4]"}, "[2-4]\n"},
        {{"-x", "z", "n1"}, "n1\n"},
        {{"-x", "n[1-2]", "n1"}, ""},
        {{"-x", "0", ""}, ""},
    });
    CHECK(run_hostlist({"-x", "[", "n1"}).status == 1);
  }

  TEST_CASE("--limit and --nth take hosts of the sorted list") {
    check_hostlist({
        {{"-L", "2", "n[1-5]"}, "n[1-2]\n"},
        {{"-L", "-2", "n[1-5]"}, "n[4-5]\n"},
        {{"-L-2", "n[1-5]"}, "n[4-5]\n"},
        {{"--limit=0", "n[1-5]"}, "n[1-5]\n"},
        {{"-L", "9", "n[1-5]"}, "n[1-5]\n"},
        {{"-L", "-9223372036854775808", "n[1-5]"}, "n[1-5]\n"},
        {{"-S", "-L", "1", "n3,n1"}, "n1\n"},
        {{"-n", "0", "n[1-5]"}, "n1\n"},
        {{"-n", "1-2,4", "n[1-5]"}, "n[2-3,5]\n"},
        {{"-n", "-1", "n[1-5]"}, "n5\n"},
        {{"--nth=-1-2,5", "n[1-5]"}, "n[1,4-5]\n"},
        {{"-L", "2", "-n", "-1", "n[1-5]"}, "n2\n"},
        {{"-n", "[]", "n1"}, ""},
    });
    CHECK(run_hostlist({"-n", "5", "n[1-5]"}).err ==
          "resourcectl: --nth 5: positions count from 0, and the list has 5 hosts\n");
    CHECK(run_hostlist({"-n", "-6", "n[1-5]"}).err ==
          "resourcectl: --nth -6: positions at the end count from -1, and the list has 5 hosts\n");
    CHECK(run_hostlist({"-n", "-0", "n[1-5]"}).status == 1);
    CHECK(run_hostlist({"-n", "0", ""}).status == 1);
    CHECK(run_hostlist({"-n", "x", "n1"}).status == 1);
    CHECK(run_hostlist({"-L", "x", "n1"}).status == 2);
  }

  TEST_CASE("--expand, --count and --find print other things than the list") {
    check_hostlist({
        {{"-e", "n[1-3]"}, "n1 n2 n3\n"},
        {{"-ed,", "n[1-3]"}, "n1,n2,n3\n"},
        {{"-e", "-d", "\\n", "n[1-3]"}, "n1\nn2\nn3\n"},
        {{"--expand", "--delimiter", "", "n[1-3]"}, "n1n2n3\n"},
        {{"-cu", "n1", "n1"}, "1\n"},
        {{"-F", "n2,n1", "n1,n2,n1"}, "1 0\n"},
        {{"-S", "-F", "n3", "n3,n1"}, "1\n"},
    });
    CHECK(run_hostlist({"-e", "-c", "n1"}).status == 2);
    const auto missing = run_hostlist({"-F", "n[2,5-6]", "n[1-3]"});
    CHECK(missing.status == 1);
    CHECK(missing.out.empty());
    CHECK(missing.err == "resourcectl: no host n[5-6] in the list\n");
  }

  TEST_CASE("--quiet tells by the status whether there are hosts") {
    check_hostlist(
        {{{"-q", "n1"}, ""}, {{"-qi", "n[1-3]", "n2"}, ""}, {{"-qc", "n1"}, ""}, {{"-qF", "n1", "n1"}, ""}});
    const auto empty = run_hostlist({"-q", "-i", "n1", "n2"});
    CHECK(empty.status == 1);
    CHECK(empty.out.empty());
    CHECK(empty.err.empty());
    CHECK(run_hostlist({"-q", "-F", "z", "n1"}).err == "resourcectl: no host z in the list\n");
  }
}
