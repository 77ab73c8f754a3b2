// Verification of the found resources against the expected ones, per resource type.

#include "core/rset/verify.hpp"

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "nodes.hpp"

namespace resourced::rset {
namespace {

using test::nodes;

TEST_CASE("modes of one resource type") {
  const ResourceSet expected = nodes("0", "0-3", "", "a");
  struct Row {
    VerifyMode mode;
    const char* cores;
    const char* text;
  };
  for (const Row& row :
       {Row{VerifyMode::strict, "0-3", ""}, Row{VerifyMode::strict, "0-1", "missing resources: core[2-3]"},
        Row{VerifyMode::strict, "0-4", "extra resources: core4"},
        Row{VerifyMode::strict, "1-4", "missing resources: core0; extra resources: core4"},
        Row{VerifyMode::allow_extra, "0-9", ""},
        Row{VerifyMode::allow_extra, "1-9", "missing resources: core0"},
        Row{VerifyMode::allow_missing, "0-1", ""},
        Row{VerifyMode::allow_missing, "1-4", "extra resources: core4"}, Row{VerifyMode::ignore, "7", ""}}) {
    CAPTURE(row.cores);
    VerifyOptions options = VerifyOptions::all(VerifyMode::ignore);
    options.core = row.mode;
    CHECK(verify(expected, nodes("0", row.cores, "", "a"), options) == row.text);
  }
}

TEST_CASE("gpus and cores have modes of their own") {
  const ResourceSet expected = nodes("0", "0-3", "0-3", "a");
  const ResourceSet found = nodes("0", "0-2", "0-1", "a");
  VerifyOptions options = VerifyOptions::all(VerifyMode::strict);
  CHECK(verify(expected, found, options) == "missing resources: core3,gpu[2-3]");
  options.core = VerifyMode::ignore;
  CHECK(verify(expected, found, options) == "missing resources: gpu[2-3]");
  options.gpu = VerifyMode::allow_missing;
  CHECK(verify(expected, found, options).empty());
}

TEST_CASE("without configuration extra cores and any gpus are fine, another host is not") {
  const ResourceSet expected = nodes("0", "0-3", "0", "a");
  CHECK(verify(expected, nodes("0", "0-7", "3", "a")).empty());
  CHECK(verify(expected, nodes("0", "0-2", "", "a")) == "missing resources: core3");
  CHECK(verify(expected, nodes("0", "0-3", "", "b")) == "hostname mismatch: rank 0 is b, expected a");
}

TEST_CASE("ranks are named where there is more than one") {
  const ResourceSet expected = nodes("0-3", "0-3", "0", "n[0-3]");
  VerifyOptions options = VerifyOptions::all(VerifyMode::strict);
  CHECK(verify(expected, expected, options).empty());
  CHECK(verify(expected, nodes("0-3", "0-2", "0", "n[0-3]"), options) ==
        "missing resources: rank[0-3]/core3");
  CHECK(verify(expected, nodes("0-1", "0-3", "0", "n[0-1]"), options) ==
        "missing resources: rank[2-3]/core[0-3],gpu0");
  CHECK(verify(expected, nodes("0-4", "0-3", "0", "n[0-4]"), options) ==
        "extra resources: rank4/core[0-3],gpu0");
  CHECK(verify(expected, nodes("0-4", "0-3", "0", "n[0-4]")).empty());
  CHECK(verify(expected, nodes("0-3", "0-3", "0", "n[0-1,3,2]"), options) ==
        "hostname mismatch: rank 2 is n3, expected n2 (and 1 more)");
}

TEST_CASE("a rank that is absent is missed even where its resources do not count") {
  const ResourceSet expected = nodes("0-1", "0", "", "a,b");
  const ResourceSet found = nodes("0", "0", "", "a");
  VerifyOptions options = VerifyOptions::all(VerifyMode::ignore);
  CHECK(verify(expected, found, options).empty());
  options.hostname = VerifyMode::strict;
  CHECK(verify(expected, found, options) == "missing ranks: 1");
}

TEST_CASE("names of the modes") {
  CHECK(parse_verify_mode("strict") == VerifyMode::strict);
  CHECK(parse_verify_mode("allow-extra") == VerifyMode::allow_extra);
  CHECK(parse_verify_mode("allow-missing") == VerifyMode::allow_missing);
  CHECK(parse_verify_mode("ignore") == VerifyMode::ignore);
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_verify_mode("lax")),
                       "\"lax\" is none of strict, allow-extra, allow-missing, ignore", Error);
}

}  // namespace
}  // namespace resourced::rset
