// Remarks on a configuration that is valid but probably a mistake, and the nodes of partitions and queues.
#include "config/remarks.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/inventory.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::TempDir;

namespace {

/// The remarks on a file, without its path.
std::vector<std::string> remarks_on(const std::string& text) {
  const TempDir dir;
  const std::string file = dir.write("c.toml", text);
  const Config config = load(file);
  std::vector<std::string> lines = remarks(config, load_inventory(config).resources);
  for (std::string& line : lines) {
    REQUIRE(line.starts_with(file + ':'));
    line.erase(0, file.size() + 1);
  }
  return lines;
}

using Lines = std::vector<std::string>;

const std::string four = "[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0-3\"\nproperties = [\"gpu\"]\n";

}  // namespace

TEST_CASE("a number of cores in place of their numbers is told") {
  const auto entry = [](const std::string& keys) {
    return "[[resource.config]]\nhosts = \"a[0-1]\"\n" + keys;
  };
  CHECK(remarks_on(entry("cores = \"0-31\"\ngpus = \"0\"\n")).empty());
  CHECK(remarks_on(entry("cores = \"0,2\"\n")).empty());
  CHECK(remarks_on(entry("cores = \"32\"\n")) ==
        Lines{R"(3: resource.config[0].cores: 1 core, number 32; 32 cores are "0-31")"});
  CHECK(remarks_on(entry("cores = \"0-31\"\ngpus = \"4\"\n")) ==
        Lines{R"(4: resource.config[0].gpus: 1 gpu, number 4; 4 gpus are "0-3")"});
  CHECK(remarks_on(entry("cores = \"0-31\"\ngpus = \"1\"\n")) ==
        Lines{R"(4: resource.config[0].gpus: 1 gpu, number 1; one gpu is "0", 2 gpus are "0-1")"});
  // The cores of several entries of one host add up.
  CHECK(remarks_on(entry("cores = \"0\"\n") + entry("cores = \"1\"\n")).empty());
  // The remarks on a mistake in each entry are limited to 16 lines.
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "[[resource.config]]\nhosts = \"b" + std::to_string(i) + "\"\ncores = \"8\"\n";
  CHECK(remarks_on(many).size() == 16);
}

TEST_CASE("partitions and queues without nodes, and properties that no node has") {
  const std::string partition = "[[acquire.partition]]\nname = \"p\"\n";
  CHECK(remarks_on(four + partition + "constraint = \"gpu and -host:a3\"\n").empty());
  CHECK(remarks_on(four + partition + "constraint = \"gpux\"\n") ==
        Lines{"7: acquire.partition[0].constraint: no node has the property gpux",
              "7: acquire.partition[0].constraint: the partition p has no nodes"});
  CHECK(remarks_on(four + partition + "constraint = \"not fast\"\n") ==
        Lines{"7: acquire.partition[0].constraint: no node has the property fast"});
  CHECK(remarks_on(four + partition + "constraint = \"host:a0 and host:a1\"\n") ==
        Lines{"7: acquire.partition[0].constraint: the partition p has no nodes"});
  CHECK(remarks_on(four + "[queues.q]\nrequires = [\"gpu\"]\n[queues.all]\n[queues.h]\nhosts = \"a1\"\n")
            .empty());
  CHECK(remarks_on(four + "[queues.q]\nrequires = [\"gpux\", \"gpu\"]\n") ==
        Lines{"5: queues.q: no node has the property gpux", "5: queues.q: the queue has no nodes"});
}

TEST_CASE("numbers that are ranks and names of other hosts") {
  const auto hosts = [](const std::string& names, const std::string& more = "") {
    return "[resource]\n" + more + "[[resource.config]]\nhosts = \"" + names + "\"\ncores = \"0-3\"\n";
  };
  CHECK(remarks_on(hosts("[0-7]")).empty());
  CHECK(remarks_on(hosts("[00-07]", "exclude = \"3\"\n")).empty());
  const std::string told =
      "1: resource: the number 1 is the rank of host 0002, and the name of host 0001: commands refuse it, "
      "and "
      "take rank:1 and host:0001";
  CHECK(remarks_on(hosts("[0001-0008]")) == Lines{told});
  CHECK(remarks_on(hosts("[0001-0008]", "exclude = \"0003\"\n")) == Lines{told});
  CHECK(remarks_on(hosts("[0001-0008]", "exclude = \"3\"\n")) ==
        Lines{told, "2: resource.exclude: 3 is read as ranks, which are 0004"});
}

TEST_CASE("the nodes of partitions and queues") {
  const Config config = test::load_text(four +
                                        "[[resource.config]]\nhosts = \"a3\"\nproperties = [\"fast\"]\n"
                                        "[[acquire.partition]]\nname = \"p\"\nconstraint = \"not fast\"\n"
                                        "[[acquire.partition]]\nname = \"t\"\ntargets = \"3\"\n"
                                        "[queues.all]\n[queues.few]\nhosts = \"a[0-1]\"\n"
                                        "[queues.fast]\nrequires = [\"gpu\", \"fast\"]\n"
                                        "[queues.night]\nparent = \"few\"\n");
  const Inventory inventory = load_inventory(config);
  CHECK(targets_of(config.acquire.partitions[0], inventory.resources).encode() == "0-2");
  CHECK(targets_of(config.acquire.partitions[1], inventory.resources).encode() == "3");
  std::vector<std::pair<std::string, std::string>> queues;
  for (const auto& [name, ranks] : targets_of_queues(config, inventory.resources))
    queues.emplace_back(name, ranks.encode());
  CHECK(queues == std::vector<std::pair<std::string, std::string>>{
                      {"all", "0-3"}, {"fast", "3"}, {"few", "0-1"}, {"night", "0-1"}});
}
