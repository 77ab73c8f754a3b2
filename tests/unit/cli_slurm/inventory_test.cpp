// Nodes and partitions of a slurm.conf. The counts of cores are compared with those of slurmctld in
// tests/interop/slurm.
#include "cli/slurm/inventory.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::cli::slurm {

namespace {

Inventory read_nodes(const std::string& text) {
  return read_inventory(read_conf("f", [&text](const std::string& /*path*/) { return text; }));
}

std::string refusal_of(const std::string& text) {
  try {
    (void)read_nodes(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The hosts of a partition; `all` for all.
std::string hosts_of(const Inventory& inventory, const std::string& name) {
  for (const Partition& partition : inventory.partitions) {
    if (partition.name == name) return partition.has_all ? "all" : partition.hosts.encode();
  }
  return "no such partition";
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("cores are counted in sockets and boards, and by CPUs where the file has no sockets") {
  const std::vector<std::pair<const char*, unsigned long>> rows{
      {"", 1},
      {"CPUs=12", 12},
      {"Procs=12", 12},
      {"Procs=12 CPUs=4", 4},
      {"CPUs=12 ThreadsPerCore=2", 6},
      {"CPUs=12 CoresPerSocket=3 ThreadsPerCore=2", 6},
      {"Sockets=2 CoresPerSocket=8", 16},
      {"Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CPUs=32", 16},
      {"Boards=2 SocketsPerBoard=3 CoresPerSocket=4", 24},
      {"Boards=2 CoresPerSocket=4", 8},
      {"Sockets=1 SocketsPerBoard=3 Boards=2", 6},
      {"CPUs=16 Sockets=4", 4},
      {"CPUs=5 CoresPerSocket=3", 3},
      {"CPUs=8 CoresPerSocket=3", 3},
      {"CPUs=6 ThreadsPerCore=4 Boards=2", 2},
      {"CPUs=0 Boards=0 ThreadsPerCore=0", 1},
  };
  for (const auto& [text, cores] : rows) {
    CAPTURE(text);
    CHECK(read_nodes(std::string("NodeName=n ") + text).nodes.at(0).cores == cores);
  }
}

TEST_CASE("names of nodes may have several pairs of brackets") {
  const auto hosts = [](const std::string& text) { return read_nodes("NodeName=" + text).nodes.at(0).hosts; };
  CHECK(hosts("a,b[1-2],c") == text::Hostlist::parse("a,b1,b2,c"));
  CHECK(hosts("r[0-1]n[8,10]x") == text::Hostlist::parse("r0n8x,r0n10x,r1n8x,r1n10x"));
  CHECK(hosts("r[0-1]s[0-1]n[0-1]").size() == 8);
}

TEST_CASE("later lines of nodes inherit what DEFAULT lines have, and may replace it") {
  const auto nodes = read_nodes(
                         "NodeName=a\n"
                         "NodeName=DEFAULT CPUs=16 Feature=ib Gres=gpu:2\n"
                         "NodeName=b\n"
                         "NodeName=c Procs=4 CPUs=5 Features=eth Gres=gpu:1\n"
                         "nodename=Default CoresPerSocket=2\n"
                         "NodeName=d Sockets=2\n")
                         .nodes;
  REQUIRE(nodes.size() == 4);
  const std::vector<unsigned long> cores{1, 16, 5, 4};
  const std::vector<unsigned long> gpus{0, 2, 1, 2};
  const std::vector<Texts> features{{}, {"ib"}, {"eth"}, {"ib"}};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(nodes[i].cores == cores[i]);
    CHECK(nodes[i].gpus == gpus[i]);
    CHECK(nodes[i].features == features[i]);
  }
}

TEST_CASE("gpus of all types are counted, and other generic resources are named") {
  const std::vector<std::pair<const char*, unsigned long>> rows{{"gpu", 1},
                                                                {"gpu:4", 4},
                                                                {"gpu:a100", 1},
                                                                {"gpu:a100:4", 4},
                                                                {"gpu:a:1,gpu:b:2", 3},
                                                                {"nic:4", 0},
                                                                {"gpu:no_consume:2", 0},
                                                                {"gpu:2K", 2048},
                                                                {"gpu:a:1k", 1024},
                                                                {"gpu:2KiB", 2048},
                                                                {"gpu:2kb", 2000},
                                                                {"gpu:0M", 0},
                                                                {"gpu:K", 1},
                                                                {"gpu:2(S:0)", 2},
                                                                {"gpu:a:2(S:0-1),gpu:b:1(S:1)", 3},
                                                                {"gpu:0", 0}};
  for (const auto& [text, gpus] : rows) {
    CAPTURE(text);
    CHECK(read_nodes(std::string("NodeName=n Gres=") + text).nodes.at(0).gpus == gpus);
  }
  CHECK(read_nodes("NodeName=n Gres=gpu:a100:2,nic:4").left_out ==
        Texts{"f:1: Gres \"gpu:a100:2\": the type of the gpus", "f:1: Gres \"nic:4\""});
  CHECK(read_nodes("NodeName=n Gres=gpu:2(S:0)").left_out ==
        Texts{"f:1: Gres \"gpu:2(S:0)\": the sockets of the gpus"});
}

TEST_CASE("partitions have the nodes of hosts, sets of nodes and ALL, without nodes of the future") {
  const auto inventory = read_nodes(
      "PartitionName=early Nodes=n2\n"
      "NodeName=n[1-3] Features=big,ib\nNodeName=m1\nNodeName=f1 State=FUTURE\n"
      "NodeSet=of_feature Feature=big\nNodeSet=of_nodes Nodes=n1,m1\n"
      "PartitionName=list Nodes=n[2-3],f1,n2\n"
      "PartitionName=sets Nodes=of_nodes,of_feature\n"
      "PartitionName=all Nodes=all Default=YES\n"
      "PartitionName=empty\n"
      "PartitionName=Default Nodes=m1\n"
      "PartitionName=inherits Default=no State=DOWN\n");
  CHECK(hosts_of(inventory, "early") == "n2");
  CHECK(hosts_of(inventory, "list") == "n[2-3]");
  CHECK(hosts_of(inventory, "sets") == "m1,n[1-3]");
  CHECK(hosts_of(inventory, "all") == "all");
  CHECK(hosts_of(inventory, "inherits") == "m1");
  CHECK(inventory.partitions.size() == 5);
  CHECK(inventory.default_partition == "all");
  CHECK(inventory.nodes.size() == 2);
  CHECK(inventory.left_out == Texts{"f:4: State=FUTURE of f1, which are not in the inventory",
                                    "f:10: partition \"empty\", which has no nodes",
                                    "f:12: PartitionName State=\"DOWN\""});
}

TEST_CASE("a set of nodes has all nodes with its feature, also if that cannot be a property") {
  const auto inventory = read_nodes(
      "NodeName=n[1-2] Features=ok,no!\nNodeName=m[1-2] Features=a(b),plain\nNodeName=k1 Features=plain\n"
      "NodeName=f1 Features=no! State=FUTURE\n"
      "NodeSet=odd Feature=no!\nNodeSet=round Feature=a(b)\nNodeSet=mixed Feature=no! Nodes=k1\n"
      "NodeSet=two Feature=no!,plain\n"
      "PartitionName=odd Nodes=odd\nPartitionName=round Nodes=round\nPartitionName=mixed Nodes=mixed\n"
      "PartitionName=two Nodes=two,k1\n");
  CHECK(hosts_of(inventory, "odd") == "n[1-2]");
  CHECK(hosts_of(inventory, "round") == "m[1-2]");
  CHECK(hosts_of(inventory, "mixed") == "k1,n[1-2]");
  CHECK(hosts_of(inventory, "two") == "k1");
}

TEST_CASE("each key that is not carried over is named once, with its first place") {
  const auto inventory = read_nodes(
      "ClusterName=c\nNodeName=DEFAULT RealMemory=1000\nNodeName=a NodeAddr=x RealMemory=2\n"
      "NodeName=b ThreadsPerCore=2 CPUs=2 State=CLOUD Features=ok,no!\nPartitionName=p Nodes=a "
      "MaxTime=1:00\n");
  CHECK(inventory.left_out == Texts{"f:1: ClusterName", "f:2: NodeName RealMemory", "f:3: NodeName NodeAddr",
                                    "f:4: ThreadsPerCore: cores are counted, not threads",
                                    "f:4: feature \"no!\": a property name cannot have !",
                                    "f:4: State=\"CLOUD\"", "f:5: PartitionName MaxTime"});
  CHECK(inventory.nodes.at(1).features == Texts{"ok"});
}

TEST_CASE("nodes out of service are listed with their reasons") {
  const auto inventory = read_nodes(
      "NodeName=DEFAULT State=UNKNOWN\nNodeName=a State=down Reason=\"no power\"\nNodeName=b State=DRAIN\n"
      "NodeName=c State=FAIL\nNodeName=d\nDownNodes=d State=DOWN Reason=fan\n");
  REQUIRE(inventory.out_of_service.size() == 4);
  const Texts hosts{"a", "b", "c", "d"};
  const Texts reasons{"no power", "out of service in slurm.conf", "out of service in slurm.conf", "fan"};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(inventory.out_of_service[i].hosts.encode() == hosts[i]);
    CHECK(inventory.out_of_service[i].reason == reasons[i]);
  }
}

TEST_CASE("wrong values are refused with file and line") {
  CHECK(refusal_of("ClusterName=x\n") == "no NodeName with a node in these files");
  CHECK(refusal_of("\nNodeName=n CPUs=many") ==
        "f:2: CPUs: expected a number of at most 65535, found \"many\"");
  CHECK(refusal_of("NodeName=n CPUs=-1") == "f:1: CPUs: expected a number of at most 65535, found \"-1\"");
  CHECK(refusal_of("NodeName=n Sockets=65536") ==
        "f:1: Sockets: expected a number of at most 65535, found \"65536\"");
  CHECK(refusal_of("NodeName=n Boards=65535 SocketsPerBoard=65535 CoresPerSocket=65535") ==
        "f:1: 281462092005375 cores are more than 65535");
  for (const std::string gres : {"gpu:99999999999999999999", "gpu:64K", "gpu:a:1P", "gpu:40000,gpu:40000",
                                 "gpu:2x", "gpu:2Ki", "gpu:2KK", "gpu:0Z", "gpu:2.5"}) {
    CHECK(refusal_of("NodeName=n Gres=" + gres) ==
          "f:1: Gres \"" + gres.substr(gres.rfind("gpu")) +
              "\": expected at most 65535 gpus, as in gpu:2 or gpu:TYPE:2");
  }
  CHECK(refusal_of("NodeName=a[1-2]\nNodeName=a2") == "f:2: node \"a2\" is named before");
  CHECK(refusal_of("NodeName=n\nPartitionName=p Nodes=n\nPartitionName=p Nodes=n") ==
        "f:3: partition \"p\" is in f:2, too");
  CHECK(refusal_of("NodeName=n\nPartitionName=p Nodes=n,x") == "f:2: no NodeName has the node \"x\"");
  CHECK(refusal_of("CPUs=4 NodeName=n") == "f:1: NodeName must be the first key of its line");
  CHECK(refusal_of("NodeName=\"\"") == "f:1: no node is named");
  CHECK(refusal_of("NodeName=-oProxyCommand=x").starts_with("f:1: "));
  CHECK(refusal_of("NodeName=n[1-").starts_with("f:1: "));
  CHECK(refusal_of("NodeName=a[1-65536]\nNodeName=b") == "f:2: more than 65536 nodes in all");
  CHECK(refusal_of("NodeName=a[1-2000]b[1-2000]c[1-2000]") == "f:1: more than 65536 nodes");
  CHECK(refusal_of("NodeName=n\nNodeSet=s Nodes=s\nPartitionName=p Nodes=s") ==
        "f:3: no NodeName has the node \"s\"");
}

TEST_CASE("the configuration has an entry for each line of nodes and a queue for each partition") {
  const auto inventory = read_nodes(
      "SlurmUser=root\nNodeName=n[1-2] Sockets=2 CoresPerSocket=4 Gres=gpu:1 Feature=ib,big\nNodeName=m "
      "State=DRAIN "
      "Reason=\"it's off\"\nPartitionName=batch Nodes=n[1-2] Default=YES\nPartitionName=a.b Nodes=ALL\n");
  CHECK(to_toml(inventory) == R"([[resource.config]]
hosts = "n[1-2]"
cores = "0-7"
gpus = "0"
properties = ["ib","big"]

[[resource.config]]
hosts = "m"
cores = "0"

[queues.batch]
hosts = "n[1-2]"

[queues."a.b"]
hosts = "all"

[policy.jobspec.defaults.system]
queue = "batch"

# Out of service, to be drained once the daemon runs:
#   resourcectl drain m -- 'it'\''s off'
# Not carried over:
#   f:1: SlurmUser
)");
}

TEST_CASE("names in other scripts stay as they are, because TOML has no surrogates") {
  CHECK(to_toml(read_nodes("NodeName=n Feature=\xf0\x9f\x98\x80\nPartitionName=\xc3\xa4 Nodes=n\n")) ==
        "[[resource.config]]\nhosts = \"n\"\ncores = \"0\"\nproperties = [\"\xf0\x9f\x98\x80\"]\n\n"
        "[queues.\"\xc3\xa4\"]\nhosts = \"n\"\n\n");
}

TEST_CASE("commands for nodes out of service name hosts, also those whose names read as ranks") {
  const auto toml = to_toml(read_nodes("NodeName=5 State=DOWN Reason=fan\n"));
  CHECK(toml.find("#   resourcectl drain host:5 -- fan\n") != std::string::npos);
}

TEST_CASE("a partition without a name and expressions that are too long are refused") {
  CHECK(refusal_of("NodeName=n\nPartitionName=\"\" Nodes=n") == "f:2: a partition without a name");
  CHECK(
      refusal_of("NodeName=n[1]" + std::string(70000, 'x') + "[1]").ends_with(" is longer than 65536 bytes"));
}

}  // namespace resourced::cli::slurm
