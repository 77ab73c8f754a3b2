// The commands for text formats, which need no daemon: R, shapes, jobspecs, constraints, feasibility.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/commands/input.hpp"
#include "core/document/document.hpp"
#include "core/error.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using nlohmann::json;
using test::run;

namespace {

using Words = std::vector<std::string>;

std::string encode(Words options) {
  options.insert(options.begin(), {"R", "encode"});
  const auto outcome = run(options);
  REQUIRE(outcome.status == 0);
  return outcome.out;
}

std::string output(const Words& arguments, const std::string& input) {
  const auto outcome = run(arguments, input);
  CAPTURE(json(arguments).dump());
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  return outcome.out;
}

std::string short_form(const std::string& r) { return output({"R", "decode", "--short"}, r); }

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::filesystem::path vectors = RESOURCED_VECTORS;

}  // namespace

TEST_SUITE("tool kit") {
  // The expected output is that of flux R decode 0.88 for the same R and options.
  TEST_CASE("R decode has the short options of flux R decode, and prints all that is asked for") {
    const auto r =
        encode({"-r", "0-3", "-c", "0-1", "-g", "0", "-H", "a[0-3]", "-p", "batch:0-1", "-p", "x:2"});
    const auto decode = [&](Words options) {
      options.insert(options.begin(), {"R", "decode"});
      return output(options, r);
    };
    CHECK(decode({"-s"}) == "rank[0-3]/core[0-1],gpu0\n");
    CHECK(decode({"-n"}) == "a[0-3]\n");
    CHECK(decode({"-r"}) == "0-3\n");
    CHECK(decode({"-c", "node"}) == "4\n");
    CHECK(decode({"-ccore"}) == "8\n");
    CHECK(decode({"-c", "node", "-c", "core"}) == "4\n8\n");
    CHECK(decode({"-c", "gpu"}) == "4\n");
    CHECK(decode({"-i", "1-2", "-s"}) == "rank[1-2]/core[0-1],gpu0\n");
    CHECK(decode({"-x", "1-2", "-s"}) == "rank[0,3]/core[0-1],gpu0\n");
    CHECK(decode({"-p", "batch", "-r"}) == "0-1\n");
    CHECK(decode({"-p", "^batch", "-r"}) == "2-3\n");
    CHECK(decode({"-c", "core", "-r", "-n", "-s"}) == "rank[0-3]/core[0-1],gpu0\na[0-3]\n0-3\n8\n");
    CHECK(decode({"-i", "1,9", "-r"}) == "1\n");
    CHECK(decode({"-i", "9", "-s"}) == "\n");
    CHECK(decode({"-i", "1", "-x", "1", "-c", "node"}) == "0\n");
    CHECK(run({"R", "decode", "-i", "b1"}, r).err.find("unknown host: b1") != std::string::npos);
    const auto two = encode({"-r", "0-1", "-H", "a,b"}) + encode({"-r", "1-2", "-c", "0-1", "-H", "b,c"});
    CHECK(output({"R", "decode", "-s", "-n"}, two) == "rank0/core0 rank[1-2]/core[0-1]\na,b,c\n");
  }

  TEST_CASE("R encode takes cores and gpus from a topology") {
    const auto file = [](const std::string& name) {
      return RESOURCED_SOURCE "/tests/vectors/hwloc/" + name + ".xml";
    };
    const auto shown = [](const std::string& r) { return output({"R", "decode", "-s", "-n"}, r); };
    CHECK(shown(encode({"--xml", file("four_gpus"), "-H", "a,b"})) == "rank[0-1]/core[0-15],gpu[0-3]\na,b\n");
    CHECK(shown(encode({"-f", file("restricted_cpuset"), "-H", "a", "-r", "7"})) == "rank7/core[0-3]\na\n");
    const auto local = encode({"--local"});
    CHECK(output({"R", "decode", "-c", "node"}, local) == "1\n");
    CHECK(output({"R", "decode", "-c", "core"}, local) != "0\n");
    CHECK(encode({"-l"}) == local);
    CHECK(run({"R", "encode", "--local", "-c", "0"}).status == 2);
    CHECK(run({"R", "encode", "--xml", file("smt"), "-g", "0"}).status == 2);
    CHECK(run({"R", "encode", "--xml", "/nonexistent"}).err.find("/nonexistent") != std::string::npos);
  }

  TEST_CASE("R encode makes an R from options; R decode says what is in it") {
    const auto r =
        encode({"-r", "0-3", "-c", "0-1", "-g", "0", "-H", "node[0-3]", "-p", "fast:2-3", "-p", "all"});
    CHECK(json::parse(r) == json::parse(R"({"version":1,"execution":{
            "R_lite":[{"rank":"0-3","children":{"core":"0-1","gpu":"0"}}],"nodelist":["node[0-3]"],
            "properties":{"fast":"2-3","all":"0-3"},"starttime":0.0,"expiration":0.0}})"));
    CHECK(output({"R", "decode"}, r) == r);
    CHECK(output({"R", "decode", "--short"}, r) == "rank[0-3]/core[0-1],gpu0\n");
    CHECK(output({"R", "decode", "--count", "node"}, r) == "4\n");
    CHECK(output({"R", "decode", "--count", "core"}, r) == "8\n");
    CHECK(output({"R", "decode", "--count", "gpu"}, r) == "4\n");
    CHECK(output({"R", "decode", "--nodelist"}, r) == "node[0-3]\n");
    CHECK(output({"R", "decode", "--ranks", "--include", "[1-2]"}, r) == "1-2\n");
    CHECK(output({"R", "decode", "--ranks", "--exclude", "node[0,3]"}, r) == "1-2\n");
    CHECK(output({"R", "decode", "--ranks", "--properties", "all,^fast"}, r) == "0-1\n");
    CHECK(output({"R", "decode", "--nodelist"}, encode({"-H", "[1-3]"})) == "[1-3]\n");
    CHECK(short_form(encode({})) == "rank0/core0\n");
    CHECK(run({"R", "decode"}, "").status == 1);
    CHECK(run({"R", "decode", "--count", "socket"}, r).status == 2);
    CHECK(run({"R", "decode"}, "{}").status == 1);
    CHECK(run({"R", "decode"}, "").status == 1);
  }

  TEST_CASE("R diff and intersect take two or more documents, append one or more") {
    const auto a = encode({"-r", "0-1", "-c", "0-3", "-H", "n[0-1]"});
    const auto b = encode({"-r", "1", "-c", "0-1", "-H", "n1"});
    const auto c = encode({"-r", "2", "-c", "0", "-H", "n2"});
    const auto d = encode({"-r", "0", "-c", "0", "-H", "n0"});
    CHECK(short_form(output({"R", "append"}, b + c)) == "rank1/core[0-1] rank2/core0\n");
    CHECK(short_form(output({"R", "append"}, b + c + d)) == "rank[0,2]/core0 rank1/core[0-1]\n");
    CHECK(short_form(output({"R", "diff"}, a + b)) == "rank0/core[0-3] rank1/core[2-3]\n");
    CHECK(short_form(output({"R", "diff"}, a + b + d)) == "rank0/core[1-3] rank1/core[2-3]\n");
    CHECK(short_form(output({"R", "intersect"}, a + b)) == "rank1/core[0-1]\n");
    CHECK(output({"R", "append"}, b) == b);
    CHECK(run({"R", "append"}, a + b).status == 1);
    CHECK(run({"R", "diff"}, a).err == "resourcectl: needs 2 R documents on standard input, found 1\n");
    CHECK(run({"R", "diff"}, a + "{}").err.starts_with("resourcectl: document 2: "));
  }

  TEST_CASE("R remap, rerank, set-property, verify") {
    const auto r = encode({"-r", "3,7", "-c", "0-1", "-H", "a,b"});
    CHECK(output({"R", "decode", "--ranks"}, output({"R", "remap"}, r)) == "0-1\n");
    CHECK(output({"R", "decode", "--nodelist"}, output({"R", "rerank", "b,a"}, r)) == "b,a\n");
    CHECK(run({"R", "rerank", "b,c"}, r).status == 1);
    // Several documents stand for their union; they may share resources.
    const auto more = encode({"-r", "7,9", "-c", "1-2", "-H", "b,c", "-p", "z"});
    CHECK(short_form(output({"R", "remap"}, r + more)) ==
          "rank0/core[0-1] rank1/core[0-2] rank2/core[1-2]\n");
    CHECK(short_form(output({"R", "rerank", "c,b,a"}, r + more)) ==
          "rank0/core[1-2] rank1/core[0-2] rank2/core[0-1]\n");
    CHECK(output({"R", "decode", "-n"}, output({"R", "rerank", "c,b,a"}, r + more)) == "c,b,a\n");
    CHECK(run({"R", "rerank", "b,a"}, r + more).err == "resourcectl: host c is missing\n");
    const auto both = json::parse(output({"R", "set-property", "x:9", "z:3"}, r + more));
    CHECK(both["execution"]["properties"] == json{{"x", "9"}, {"z", "3,7,9"}});
    const auto part = encode({"-r", "3", "-c", "0", "-H", "a", "-p", "w"});
    for (const auto& documents : {r + part, part + r})
      CHECK(json::parse(output({"R", "decode"}, documents))["execution"]["properties"] == json{{"w", "3"}});
    CHECK(run({"R", "remap"}, r + "{}").err.starts_with("resourcectl: document 2: "));
    CHECK(run({"R", "remap"}).err == "resourcectl: needs 1 R document on standard input, found 0\n");
    const auto with = output({"R", "set-property", "x:7", "y"}, r);
    CHECK(json::parse(with)["execution"]["properties"] == json{{"x", "7"}, {"y", "3,7"}});
    const auto fewer = encode({"-r", "3,7", "-c", "0", "-H", "a,b"});
    CHECK(run({"R", "verify"}, r + r).status == 0);
    CHECK(run({"R", "verify"}, fewer + r).status == 0);
    CHECK(run({"R", "verify", "--mode", "strict"}, fewer + r).status == 1);
    const auto missing = run({"R", "verify"}, r + fewer);
    CHECK(missing.status == 1);
    CHECK(missing.err.find("missing") != std::string::npos);
    CHECK(run({"R", "verify"}, r + r + r).status == 1);
  }

  TEST_CASE("R parse-config prints what a configuration describes") {
    const test::TempDir directory;
    const auto path = directory.file("c.toml");
    std::ofstream(path) << "[[resource.config]]\nhosts = \"test[1-100]\"\ncores = \"0-7\"\n";
    CHECK(short_form(output({"R", "parse-config", path}, "")) == "rank[0-99]/core[0-7]\n");
    const auto outcome = run({"R", "parse-config", directory.file("none")});
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find("none") != std::string::npos);
  }

  TEST_CASE("documents one after the other are told apart by their braces") {
    using cli::commands::split_documents;
    CHECK(split_documents("").empty());
    CHECK(split_documents(" \n").empty());
    const std::vector<std::string_view> expected = {R"({"a":"}{\""})", "{}", R"({"b":{}})"};
    CHECK(split_documents("\n" + std::string(expected[0]) + "{} \t" + std::string(expected[2]) + "\n") ==
          expected);
    for (const auto* text : {"[]", "{} x", "{", R"({"a)", R"({"a\)", "}", "{}}"}) {
      CAPTURE(text);
      CHECK_THROWS_AS(static_cast<void>(split_documents(text)), Error);
    }
  }

  TEST_CASE("shape prints the resources list of a shape, on one line or as YAML") {
    CHECK(output({"shape", "slot=4/node"}, "") ==
          R"([{"type":"slot","count":4,"label":"default","with":[{"type":"node","count":1}]}])"
          "\n");
    CHECK(output({"shape", "--label", "x", "slot=2+/core"}, "") ==
          R"([{"type":"slot","count":{"min":2},"label":"x","with":[{"type":"core","count":1}]}])"
          "\n");
    CHECK(output({"shape", "--compact-ranges", "slot=3-30/node"}, "").find(R"("count":"3-30")") !=
          std::string::npos);
    const auto yaml = output({"shape", "--yaml", "slot=3-30/node"}, "");
    CHECK(yaml.starts_with("- type: slot\n"));
    CHECK(document::read_document(yaml) == json::parse(output({"shape", "slot=3-30/node"}, "")));
    CHECK(output({"shape", "[core;gpu=2]"}, "") == R"([{"type":"core","count":1},{"type":"gpu","count":2}])"
                                                   "\n");
    CHECK(output({"shape", "--reverse"},
                 R"([{"type":"slot","count":4,"label":"default","with":[{"type":"node","count":1}]}])") ==
          "slot=4/node\n");
    CHECK(run({"shape"}).status == 2);
  }

  TEST_CASE("a shape that is none: the column, and a caret below it") {
    const auto outcome = run({"shape", "slot=4/"});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("resourcectl: column 8: "));
    CHECK(outcome.err.find("\nslot=4/\n       ^") != std::string::npos);
  }

  TEST_CASE("jobspec validate: the documents of the RFCs") {
    for (const auto& entry : std::filesystem::directory_iterator(vectors / "spec_25")) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path().filename().string());
      CHECK(output({"jobspec", "validate", entry.path().string()}, "") == "valid\n");
      CHECK(output({"jobspec", "validate"}, read(entry.path())) == "valid\n");
    }
    for (const auto& entry : std::filesystem::directory_iterator(vectors / "spec_14")) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path().filename().string());
      CHECK(output({"jobspec", "validate", "--canonical", entry.path().string()}, "") == "valid\n");
    }
    const auto outcome = run({"jobspec", "validate", "-"}, "version: 1\n");
    CHECK(outcome.status == 1);
    CHECK(outcome.err.starts_with("resourcectl: "));
    // The prose of RFC 14 allows min and max without operator, its schema does not.
    const std::string range =
        R"({"version":999,"resources":[{"type":"slot","count":{"min":1,"max":4},"label":"a","with":[{"type":"core",)"
        R"("count":1}]}],"tasks":[{"command":["a"],"slot":"a","count":{"per_slot":1}}],"attributes":null})";
    CHECK(output({"jobspec", "validate", "--canonical"}, range) == "valid\n");
    CHECK(run({"jobspec", "validate", "--canonical", "--strict"}, range)
              .err.find("resources[0].count: max must come together with operator and operand") !=
          std::string::npos);
    CHECK(run({"jobspec", "validate", "/nonexistent"}).err ==
          "resourcectl: /nonexistent: No such file or directory\n");
  }

  TEST_CASE("jobspec from-shape makes a jobspec that is valid") {
    const auto text = output(
        {"jobspec", "from-shape", "slot=4/core=2", "--duration", "1.5m", "--", "app", "-x", "[a,b]"}, "");
    const auto jobspec = json::parse(text);
    CHECK(jobspec["version"] == 1);
    CHECK(jobspec["tasks"][0]["command"] == json{"app", "-x", "[a,b]"});
    CHECK(jobspec["attributes"]["system"]["duration"] == 90);
    const auto in_columns = json::parse(
        output({"jobspec", "from-shape", "slot=1/core=1", "--duration", "1-12:00:00", "--", "app"}, ""));
    CHECK(in_columns["attributes"]["system"]["duration"] == 129600);
    CHECK(output({"jobspec", "validate"}, text) == "valid\n");
    CHECK(run({"jobspec", "from-shape", "slot=4/core=2"}).status == 2);
  }

  TEST_CASE("constraint reads a query, and finds the ranks that match") {
    CHECK(
        json::parse(output({"constraint", "a|b&c"}, "")) ==
        json::parse(R"({"or":[{"properties":["a"]},{"and":[{"properties":["b"]},{"properties":["c"]}]}]})"));
    CHECK(run({"constraint", "-(a|b)"}).status != 0);
    CHECK(run({"constraint"}).status == 2);
    const auto taken_for_options = run({"constraint", "-host:a"});
    CHECK(taken_for_options.status == 2);
    CHECK(taken_for_options.out.empty());
    CHECK(taken_for_options.err.find("write -- before a word that begins with -") != std::string::npos);
    const auto asks_for_help = run({"status", "-nh"});
    CHECK(asks_for_help.status == 0);
    CHECK(asks_for_help.out.find("Usage: resourcectl status") != std::string::npos);
    CHECK(json::parse(output({"constraint", "--", "-host:a"}, "")) ==
          json::parse(R"({"not":[{"hostlist":["a"]}]})"));
    const auto r = encode({"-r", "0-3", "-H", "n[0-3]", "-p", "fast:2-3"});
    CHECK(output({"constraint", "--match", R"({"properties":["fast"]})"}, r) == "2-3\n");
    CHECK(output({"constraint", "--match", R"({"not":[{"hostlist":["n[1-2]"]}]})"}, r) == "0,3\n");
    CHECK(output({"constraint", "--match", "{}"}, r) == "0-3\n");
    CHECK(run({"constraint", "--match", R"({"unknown":[]})"}, r).status == 1);
  }

  TEST_CASE("feasibility against an R in a file") {
    const test::TempDir directory;
    const auto file = directory.file("R.json");
    std::ofstream(file) << encode({"-r", "0-9", "-c", "0-7", "-H", "n[0-9]", "-p", "fast:0-1"});
    CHECK(output({"feasibility", "--R", file, "slot=10/core=5"}, "") == "feasible\n");
    // Each of the ten nodes has room for one slot only.
    const auto outcome = run({"feasibility", "--R", file, "slot=20/core=5"});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("resourcectl: "));
    CHECK(run({"feasibility", "--R", file, "--constraint", "fast", "node=2"}).status == 0);
    CHECK(run({"feasibility", "--R", file, "--constraint", "fast", "node=3"}).status == 1);
    const auto jobspec = run({"jobspec", "from-shape", "slot=4/core=2", "--", "app"}).out;
    CHECK(run({"feasibility", "--R", file, "--jobspec", "-", "--constraint", "fast"}, jobspec).status == 0);
    CHECK(run({"feasibility", "--R", file, "--jobspec", "-", "--constraint", "-fast&fast"}, jobspec).status ==
          1);
    CHECK(run({"feasibility", "--R", file}).status == 2);
    CHECK(run({"feasibility", "--R", file, "--jobspec", "-", "node"}).status == 2);
  }
}
