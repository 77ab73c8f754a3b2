// The R that a node reports (RFC 20).
#include <cerrno>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "agent/hw/probe.hpp"
#include "core/error.hpp"

using namespace resourced;
using agent::hw::Hardware;
using agent::hw::node_resources;
using nlohmann::json;

TEST_SUITE("node") {
  TEST_CASE("one target of rank 0, with cores and GPUs numbered from 0 on") {
    struct Case {
      Hardware hardware;
      json children;
    };
    const std::vector<Case> cases = {
        {{1, 0}, {{"core", "0"}}},
        {{8, 0}, {{"core", "0-7"}}},
        {{128, 1}, {{"core", "0-127"}, {"gpu", "0"}}},
        {{16, 4}, {{"core", "0-15"}, {"gpu", "0-3"}}},
    };
    for (const auto& [hardware, children] : cases) {
      CAPTURE(children.dump());
      const auto r = node_resources("node7", hardware).to_json();
      CHECK(r.at("version") == 1);
      CHECK(r.at("execution").at("R_lite") == json::array({{{"rank", "0"}, {"children", children}}}));
      CHECK(r.at("execution").at("nodelist") == json::array({"node7"}));
    }
  }

  TEST_CASE("a name that no host can have is refused, and hardware without a core") {
    for (const auto* name : {"", "two hosts", "a,b", "n[0-3]", "tab\t", "n\xc3\xb6"}) {
      CAPTURE(name);
      CHECK_THROWS_AS(static_cast<void>(node_resources(name, {1, 0})), Error);
    }
    CHECK_THROWS_AS(static_cast<void>(node_resources("node7", {0, 4})), Error);
  }

  TEST_CASE("this host has a name that a host can have") {
    const auto name = agent::hw::local_hostname();
    CHECK(node_resources(name, {1, 0}).host(0) == name);
  }
}
