// Candidates for completion among many names.
#include "cli/name_groups.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using resourced::cli::most_names;
using resourced::cli::name_candidates;

TEST_CASE("groups of many names end at whole characters") {
  // UTF-8: the first two letters share their first byte, the third one has another first byte.
  const std::vector<std::string> letters = {"б", "в", "я"};
  std::vector<std::string> names;
  for (const std::string& letter : letters) {
    for (std::size_t i = 0; i < most_names; ++i) names.push_back(letter + std::to_string(i));
  }
  CHECK(name_candidates(names, "") == letters);
  for (std::string& name : names) name.insert(0, "при");
  CHECK(name_candidates(names, "п") == std::vector<std::string>{"приб", "прив", "прия"});
}
