// resource.alloc-update: who may send it, and what it changes. An allocation keeps the text of `scheduling`.
#include <doctest/doctest.h>

#include "acquire_stand.hpp"

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

TEST_CASE_FIXTURE(AcquireStand,
                  "an operator who holds a partition changes allocations of others by their partition") {
  const proto::ClientId owner = connect();
  acquire(owner, {{"partition", "batch"}});
  CHECK(receive(owner).errnum() == 0);
  alloc(owner, "j", "0");
  const proto::ClientId admin = connect();
  acquire(admin, {{"partition", "night"}});
  CHECK(receive(admin).errnum() == 0);
  const auto update = [&](const json& payload) {
    request(admin, "resource.alloc-update", payload);
    settle();
    return receive(admin).errnum();
  };
  CHECK(update({{"id", "j"}, {"note", "x"}}) == ENOENT);
  CHECK(update({{"id", "j"}, {"partition", "batch"}, {"note", "x"}}) == 0);
  const json more = {
      {"version", 1},
      {"execution",
       {{"R_lite", json::array({{{"rank", "1"}, {"children", {{"core", "0"}}}}})}, {"nodelist", {"n1"}}}}};
  CHECK(update({{"id", "j"}, {"partition", "batch"}, {"add", more}}) == EPERM);
  const json listed = json::parse(call(connect(), "resource.allocations").text())["allocations"].at(0);
  CHECK(listed["note"] == "x");
}

TEST_CASE("scheduling is kept as the text in which it came, also by a restart and in a large request") {
  // No reader of numbers and no writer of objects would give this text again.
  const std::string numbers = R"("z":1.50e3,"a":[12345678901234567890123,-0,1E2],"":"\u00e9 \"\\ x")";
  const std::string sent = "\n {" + numbers + R"( , "z": {"scheduling": [ ]}} )";
  const std::string kept = R"("scheduling":{)" + numbers + R"(,"z":{"scheduling":[]}})";
  // Members of other keys that are called the same are values as any other.
  const std::string others = R"("attributes":{"system":{"scheduling":{"a":1}}},"y":{"scheduling":[1]})";
  Stand stand;
  const proto::ClientId owner = stand.connect();
  stand.request(owner, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(owner).errnum() == 0);
  const auto alloc = [&](const std::string& rank, std::size_t blanks) {
    const std::string payload = R"({"id":")" + rank + R"(","R":{"scheduling":)" + sent +
                                R"(,"version":1,"execution":{"R_lite":[{"rank":")" + rank +
                                R"(","children":{"core":"0"}}],"nodelist":["n)" + rank + R"("]},)" + others +
                                "}}" + std::string(blanks, ' ');
    stand.service->on_message(owner,
                              proto::make_request("resource.alloc", 7, proto::make_payload(payload), 0));
    // A thread reads a large request.
    while (stand.silent(owner)) stand.step();
    return stand.receive(owner);
  };
  CHECK(alloc("1", 0).errnum() == 0);
  CHECK(alloc("2", std::size_t{1} << 17U).errnum() == 0);
  const auto check_listed = [&] {
    const proto::Message answer = stand.call(stand.connect(), "resource.allocations");
    const std::string_view list = answer.text();
    const std::size_t first = list.find(kept);
    REQUIRE(first != std::string_view::npos);
    CHECK(list.find(kept, first + 1) != std::string_view::npos);
    CHECK(list.find(others) != std::string_view::npos);
  };
  check_listed();
  stand.restart();
  check_listed();
}

}  // namespace
}  // namespace resourced::daemon::test
