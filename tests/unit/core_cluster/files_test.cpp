// Digests of configuration files: as members write them, as others write them, and their comparison.
#include "core/cluster/files.hpp"

#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace resourced::cluster::test {
namespace {

using nlohmann::json;
using Groups = std::vector<std::string>;

const FileDigests all{"i", "e", "p", "m", "a"};

}  // namespace

TEST_SUITE_BEGIN("files of members");

TEST_CASE("digests come back as they were, and those that are not told stay away") {
  CHECK(encode_files(all) ==
        json{{"inventory", "i"}, {"exclude", "e"}, {"partitions", "p"}, {"monitor", "m"}, {"access", "a"}});
  CHECK(read_files(encode_files(all)) == all);
  const FileDigests some{"i", "", "", "", "a"};
  CHECK(encode_files(some) == json{{"inventory", "i"}, {"access", "a"}});
  CHECK(read_files(encode_files(some)) == some);
}

TEST_CASE("whatever is no digest counts as not told") {
  for (const json& value :
       {json(), json(1), json("i"), json::array({"i"}), json::object(), json{{"inventory", 1}},
        json{{"inventory", nullptr}}, json{{"inventory", std::string(65, 'a')}}, json{{"other", "i"}}})
    CHECK(read_files(value) == FileDigests{});
  CHECK(read_files(json{{"inventory", std::string(64, 'a')}, {"later", "x"}, {"access", true}}) ==
        FileDigests{std::string(64, 'a')});
}

TEST_CASE("the groups that differ are named, and unknown ones are not compared") {
  CHECK(differing_files(all, all) == Groups{});
  CHECK(differing_files(all, {"i", "E", "p", "m", "A"}) == Groups{"exclude", "access"});
  CHECK(differing_files(all, {"", "E", "", "", "a"}) == Groups{"exclude"});
  CHECK(differing_files({"", "", "p"}, {"i", "e"}) == std::nullopt);
  CHECK(differing_files(all, {}) == std::nullopt);
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
