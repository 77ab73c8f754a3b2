// Job ids in the forms of RFC 19: the numbers of its examples, and those that `flux job id` prints.
#include "core/text/job_id.hpp"

#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"

using resourced::Error;
using resourced::text::parse_job_id;

TEST_CASE("each form of one job id") {
  constexpr std::uint64_t id = 6787342413402046;
  CHECK(parse_job_id("6787342413402046") == id);
  CHECK(parse_job_id("ƒuzzybunny") == id);
  CHECK(parse_job_id("fuzzybunny") == id);
  CHECK(parse_job_id("0018.1d0d.4d85.0fbe") == id);
  CHECK(parse_job_id("job.0018.1d0d.4d85.0fbe") == id);
  CHECK(parse_job_id("0x181d0d4d850fbe") == id);
}

TEST_CASE("the least and the largest") {
  CHECK(parse_job_id("ƒ1") == 0);
  CHECK(parse_job_id("0") == 0);
  CHECK(parse_job_id("0000.0000.0000.0000") == 0);
  CHECK(parse_job_id("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  CHECK(parse_job_id("fjpXCZedGfVQ") == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("text that is no job id") {
  for (const char* text :
       {"", "ƒ", "f", "f0", "fO", "12x", "-1", "0x", "0xg", "18446744073709551616", "fjpXCZedGfVR",
        "0000.0000.0000", "0000.0000.0000.000g", "00000.000.0000.0000", "job.", "job.12", " 1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_job_id(text), Error);
  }
}
