// The inventory that a daemon begins with, as its configuration and its store have it.
#include "daemon/inventory.hpp"

#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "config/config.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::test {
namespace {

TEST_CASE("a fault of the exclusions is that of the present configuration, and not of a former one") {
  const resourced::test::TempDir dir;
  const auto read = [&](const char* exclude) {
    dir.write("resourced.toml", std::string("[resource]\nexclude = \"") + exclude +
                                    "\"\n[[resource.config]]\nhosts = \"n[0-3]\"\ncores = \"0\"\n");
    return config::load(dir.file("resourced.toml"));
  };
  std::optional<Error> fault;
  CHECK(starting_inventory(read("n9"), dir.path(), fault).exclude.empty());
  REQUIRE(fault);
  CHECK(starting_inventory(read("n1"), dir.path(), fault).exclude == text::IdSet{1});
  CHECK_FALSE(fault);
}

}  // namespace
}  // namespace resourced::daemon::test
