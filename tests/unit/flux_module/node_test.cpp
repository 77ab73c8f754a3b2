// The resources of a node, and the reasons for which a rank drains itself.
#include "flux/module/node.hpp"

#include <thread>

#include <doctest/doctest.h>

#include "environment.hpp"

using namespace resourced;
using namespace resourced::flux::module;
using resourced::rset::ResourceSet;
using resourced::rset::VerifyMode;
using resourced::rset::VerifyOptions;
using resourced::text::IdSet;

namespace {

ResourceSet node(std::uint32_t rank, const char* host, const char* cores, const char* gpus = "") {
  const auto ids = [](const char* text) { return *text == '\0' ? IdSet() : IdSet::parse(text); };
  return ResourceSet({{IdSet{rank}, ids(cores), ids(gpus)}}, text::Hostlist::parse(host));
}

TEST_CASE("a file of Flux takes the place of the machine") {
  const test::NoHwlocVariables none;
  const test::Variable file("FLUX_HWLOC_XMLFILE", RESOURCED_VECTORS "/hwloc/big_numa.xml");
  {
    const test::Variable other("FLUX_HWLOC_XMLFILE_NOT_THISSYSTEM", "1");
    const Node node = probe_node(3, false);
    CHECK(node.resources.ranks() == IdSet{3});
    CHECK(node.resources.groups().front().cores == IdSet::range(0, 127));
  }
  // The topology of Flux's file is restricted to the cores of this machine.
  CHECK(probe_node(3, false).resources.groups().front().cores.count() <= std::thread::hardware_concurrency());
  CHECK(probe_node(3, true).resources.groups().front().cores.count() == 128);
}

TEST_CASE("the reasons, in the words of Flux") {
  const VerifyOptions usual;
  const VerifyOptions strict = VerifyOptions::all(VerifyMode::strict);
  const VerifyOptions lax = VerifyOptions::all(VerifyMode::ignore);
  const ResourceSet expected = node(1, "vm", "0-3", "0");
  CHECK(mismatch(1, expected, expected, strict).empty());
  CHECK(mismatch(3, expected, node(3, "vm", "0-3"), lax) == "rank 3 not found in expected ranks");
  CHECK(mismatch(1, expected, node(1, "a", "0-3"), usual) == "rank 1 got hostname 'a', expected 'vm'");
  CHECK(mismatch(1, expected, node(1, "a", "0-3"), lax).empty());
  CHECK(mismatch(1, expected, node(1, "vm", "0-1"), usual) == "rank 1 (vm) missing resources: core[2-3]");
  CHECK(mismatch(1, expected, node(1, "vm", "0-2"), strict) == "rank 1 (vm) missing resources: core3,gpu0");
  CHECK(mismatch(1, expected, node(1, "vm", "0-5", "0-1"), usual).empty());
  CHECK(mismatch(1, expected, node(1, "vm", "0-4", "0-1"), strict) ==
        "rank 1 (vm) has extra resources: core4,gpu1");
  CHECK(mismatch(1, expected, node(1, "vm", "0-1"), lax).empty());
  CHECK(mismatch(1, expected, node(1, "vm", "0-1", "0-1"),
                 {VerifyMode::allow_missing, VerifyMode::allow_extra, VerifyMode::strict})
            .empty());
}

}  // namespace
