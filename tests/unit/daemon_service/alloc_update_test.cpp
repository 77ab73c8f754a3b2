// resource.alloc-update: who may send it, and what it changes.
#include <doctest/doctest.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

TEST_CASE("an allocation is changed by its scheduler, or by an operator, who adds nothing") {
  Stand stand("n[0-7]");
  config::Access site;
  site.rules = {{{1001}, {}, {config::Role::admin}}, {{1002}, {}, {config::Role::user}}};
  stand.service->set_access(peers::Access(site, 0));
  const proto::ClientId owner = stand.connect();
  stand.request(owner, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(owner).errnum() == 0);
  const auto r = [](const char* rank, const char* host) {
    return json{
        {"version", 1},
        {"execution", {{"R_lite", {{{"rank", rank}, {"children", {{"core", "0"}}}}}}, {"nodelist", {host}}}}};
  };
  CHECK(stand.call(owner, "resource.alloc", {{"id", "j"}, {"R", r("2", "n2")}}).errnum() == 0);
  CHECK(stand.call(owner, "resource.alloc-update", {{"id", "j"}, {"add", r("3", "n3")}}).errnum() == 0);
  const proto::ClientId admin = stand.connect(transport::Credentials{1001, 100, {}, {}});
  CHECK(stand.call(admin, "resource.alloc-update", {{"id", "j"}, {"note", "x"}}).errnum() == 0);
  CHECK(stand.call(admin, "resource.alloc-update", {{"id", "j"}, {"add", r("4", "n4")}}).errnum() == EPERM);
  const proto::Message denied = stand.call(stand.connect(transport::Credentials{1002, 100, {}, {}}),
                                           "resource.alloc-update", {{"id", "j"}, {"note", "y"}});
  CHECK(denied.text() == "resource.alloc-update requires the role scheduler");
  const json listed = json::parse(stand.call(owner, "resource.allocations").text())["allocations"].at(0);
  CHECK(listed["note"] == "x");
  CHECK(listed["R"]["execution"]["nodelist"] == json{"n[2-3]"});
}

}  // namespace
}  // namespace resourced::daemon::test
