// The table [resource] of an instance's configuration: its meaning, and the error texts.
#include "flux/module/settings.hpp"

#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using namespace resourced::flux::module;
using nlohmann::json;
using resourced::rset::VerifyMode;
using resourced::rset::VerifyOptions;
using resourced::test::TempDir;
using resourced::text::Hostlist;

namespace {

Settings read(const char* resource, std::uint32_t rank = 0) {
  return read_settings({{"resource", json::parse(resource)}}, rank, Hostlist::parse("a,b"));
}

std::string fault(const json& configuration, const std::string& hosts = "a,b") {
  try {
    (void)read_settings(configuration, 0, Hostlist::parse(hosts));
    return {};
  } catch (const Error& error) {
    CHECK(error.errnum() == EINVAL);
    return error.what();
  }
}

std::string fault(const char* resource) { return fault(json{{"resource", json::parse(resource)}}); }

TEST_CASE("a configuration that says nothing of resources") {
  for (const json& none : {json::object(), json{{"resource", json::object()}}, json{{"kvs", 1}}}) {
    const Settings settings = read_settings(none, 0, {});
    CHECK_FALSE(settings.resources);
    CHECK(settings.journal_max == 100000);
    CHECK(settings.history == Seconds(90.0 * 86400));
    CHECK(settings.verify == VerifyOptions{});
    CHECK_FALSE(settings.is_verify_set);
    CHECK_FALSE(settings.systemd);
  }
}

TEST_CASE("an R of another version, and a configuration without hosts, in the words of Flux") {
  const TempDir directory;
  const std::string path = directory.write("R", R"({"version":42,"execution":{}})");
  CHECK(fault(json{{"resource", {{"path", path}}}}) == "error parsing R: invalid version=42");
  CHECK(fault(R"({"config":[]})") == "error parsing [resource.config] array: no hosts configured");
}

TEST_CASE("each key") {
  const Settings settings = read(R"({"exclude":"1","norestrict":true,"noverify":true,"rediscover":true,
    "no-update-watch":true,"journal-max":7,"history":"2h","verify":{"default":"ignore","gpu":"allow-missing"}})");
  CHECK(settings.exclude == "1");
  CHECK(settings.norestrict);
  CHECK(settings.noverify);
  CHECK(settings.rediscover);
  CHECK(settings.no_update_watch);
  CHECK(settings.journal_max == 7);
  CHECK(settings.history == Seconds(7200));
  CHECK(settings.is_verify_set);
  CHECK(settings.verify == VerifyOptions{VerifyMode::ignore, VerifyMode::allow_missing, VerifyMode::ignore});
  CHECK(read(R"({"history":"inf"})").history == forever);
  CHECK(read(R"({"verify":true})").verify == VerifyOptions::all(VerifyMode::strict));
  CHECK(read(R"({"verify":false})").verify == VerifyOptions::all(VerifyMode::ignore));
  CHECK(read_settings({{"systemd", {{"enable", true}}}}, 0, {}).systemd);
}

TEST_CASE("resources from entries, in the order in which hosts are first named") {
  const auto resources =
      read(R"({"config":[{"hosts":"b,a","cores":"0-3"},{"hosts":"a","gpus":"0","properties":["x"]}]})")
          .resources;
  REQUIRE(resources);
  CHECK(resources->nodelist().encode() == "b,a");
  CHECK(resources->counts().cores == 8);
  CHECK(resources->counts().gpus == 1);
  CHECK(resources->properties().at("x").encode() == "1");
}

TEST_CASE("resources follow the ranks of the brokers where the instance was booted by a configuration") {
  json configuration = {{"resource", {{"config", {{{"hosts", "b,a"}, {"cores", "0"}}}}}},
                        {"bootstrap", json::object()}};
  CHECK(read_settings(configuration, 0, Hostlist::parse("a,b")).resources->nodelist().encode() == "a,b");
  CHECK(fault(configuration, "a,c").starts_with("error reranking R: "));
}

TEST_CASE("resources from a file, and scheduling on the leader alone") {
  const TempDir dir;
  const std::string path =
      dir.write("R", read(R"({"config":[{"hosts":"a","cores":"0-3"}]})").resources->encode());
  const std::string scheduling = dir.write("scheduling", R"({"graph":1})");
  const json configuration = {{"resource", {{"path", path}, {"scheduling", scheduling}}}};
  const auto on_leader = read_settings(configuration, 0, {}).resources;
  REQUIRE(on_leader);
  REQUIRE(on_leader->scheduling() != nullptr);
  CHECK(*on_leader->scheduling() == R"({"graph":1})");
  CHECK(read_settings(configuration, 1, {}).resources->scheduling() == nullptr);
  CHECK(fault(json{{"resource", {{"scheduling", scheduling}}}}) ==
        "resource.scheduling requires resource.path or [resource.config]");
  CHECK(fault(json{{"resource", {{"path", dir.file("none")}}}})
            .starts_with(dir.file("none") + ": unable to open "));
  const std::string bad = dir.write("bad", R"({"version":42,"execution":{}})");
  CHECK(fault(json{{"resource", {{"path", bad}}}}).starts_with("error parsing R: "));
  for (const char* text : {"graph", "{\"graph\":\"\xff\"}"}) {
    const std::string file = dir.write("text", text);
    CHECK(fault(json{{"resource", {{"path", path}, {"scheduling", file}}}})
              .starts_with("error loading resource.scheduling: " + file + ": is not "));
  }
}

TEST_CASE("what is wrong") {
  CHECK(fault(R"({"foo":1})") == "error parsing [resource] configuration: unknown key foo");
  CHECK(fault(R"({"exclude":1})")
            .starts_with("error parsing [resource] configuration: Expected string, got number"));
  CHECK(fault(R"({"noverify":"yes"})")
            .starts_with("error parsing [resource] configuration: Expected true or false"));
  CHECK(fault(R"({"journal-max":"many"})")
            .starts_with("error parsing [resource] configuration: Expected integer"));
  CHECK(fault(R"({"history":"soon"})").starts_with("error parsing [resource] configuration: "));
  CHECK(fault(R"({"config":[{"cores":"0"}]})").starts_with("error parsing [resource.config] array: "));
  CHECK(fault(R"({"config":[{"hosts":"a"}]})").starts_with("error parsing [resource.config] array: "));
  CHECK(fault(R"({"config":[{"hosts":"a","cores":"0","foo":1}]})")
            .starts_with("error parsing [resource.config] array: "));
  CHECK(fault(R"({"config":[1]})").starts_with("error parsing [resource.config] array: "));
  CHECK(fault(R"({"verify":"strict"})") == "verify must be a table or boolean");
  CHECK(fault(R"({"verify":{"core":1}})") == "verify.core mode must be a string");
  CHECK(fault(R"({"verify":{"core":"maybe"}})") == "verify.core: unknown verify mode 'maybe'");
  CHECK(fault(R"({"verify":{"memory":"strict"}})") == "verify: unsupported resource type: memory");
  CHECK(fault(json{{"resource", 1}}).starts_with("error parsing [resource] configuration: "));
}

}  // namespace
