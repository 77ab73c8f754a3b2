// Digests of configuration files: text that members write, text that they do not accept, and comparisons.
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

TEST_CASE("digests are read as they were written, and unknown ones stay empty") {
  CHECK(encode_files(all) ==
        json{{"inventory", "i"}, {"exclude", "e"}, {"partitions", "p"}, {"monitor", "m"}, {"access", "a"}});
  CHECK(read_files(encode_files(all)) == all);
  const FileDigests some{"i", "", "", "", "a"};
  CHECK(encode_files(some) == json{{"inventory", "i"}, {"access", "a"}});
  CHECK(read_files(encode_files(some)) == some);
}

TEST_CASE("a value that is not a digest counts as unknown") {
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
