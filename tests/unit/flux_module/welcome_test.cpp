// The welcome that a broker sends to a module.
#include "flux/module/welcome.hpp"

#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using namespace resourced::flux::module;
using nlohmann::json;
using resourced::test::TempDir;

namespace {

json welcome(const char* rank, const char* size, const char* hosts) {
  return {{"uuid", "u"},
          {"args", {"noverify"}},
          {"attrs", {{"rank", rank}, {"size", size}, {"hostlist", hosts}}},
          {"conf", nullptr}};
}

Welcome reread(const json& content) {
  const TempDir directory;
  const int descriptor = ::open(directory.write("welcome", content.dump()).c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  struct Closing {
    int descriptor;
    ~Closing() { ::close(descriptor); }
  } const closing{descriptor};
  return read_welcome(descriptor);
}

std::string refusal(const json& content) {
  try {
    (void)reread(content);
    return {};
  } catch (const Error& error) {
    CHECK(error.errnum() == EPROTO);
    return error.what();
  }
}

TEST_CASE("a welcome without an end is refused") {
  const os::Descriptor endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  CHECK_THROWS_WITH_AS((void)read_welcome(endless.get()), "welcome: is larger than 67108864 bytes", Error);
}

TEST_CASE("a welcome has the place of the module, its hosts and its arguments") {
  const Welcome read_back = reread(welcome("1", "3", "a,b[1-2]"));
  CHECK(read_back.rank == 1);
  CHECK(read_back.size == 3);
  CHECK(read_back.hosts.encode() == "a,b[1-2]");
  CHECK(read_back.arguments == std::vector<std::string>{"noverify"});
  CHECK(read_back.configuration == json::object());
}

TEST_CASE("a hostlist may name more hosts than there are brokers, for ranks of R without a broker") {
  CHECK(reread(welcome("0", "2", "a,b,c")).hosts.encode() == "a,b,c");
}

TEST_CASE("hosts and rank are those of an instance of this size") {
  CHECK(refusal(welcome("0", "4", "a,b,c")) == "welcome: hostlist has 3 hosts for 4 ranks");
  CHECK(refusal(welcome("0", "2", "")) == "welcome: hostlist has 0 hosts for 2 ranks");
  json without = welcome("0", "2", "a,b");
  without["attrs"].erase("hostlist");
  CHECK(refusal(without) == "welcome: hostlist has 0 hosts for 2 ranks");
  CHECK(refusal(welcome("2", "2", "a,b")) == "welcome: rank 2 of 2 ranks");
  CHECK(refusal(welcome("0", "0", "")) == "welcome: rank 0 of 0 ranks");
}

TEST_CASE("an argument that the module does not have is refused with Flux's text") {
  Welcome loaded;
  loaded.arguments = {"noverify", "monitor-force-up"};
  const Arguments arguments = read_arguments(loaded);
  CHECK(arguments.noverify);
  CHECK(arguments.force_up);
  CHECK_FALSE(arguments.notruncate);
  loaded.arguments = {"notruncate", "no-verify"};
  CHECK_THROWS_WITH((void)read_arguments(loaded), "unknown option: no-verify");
}

}  // namespace
