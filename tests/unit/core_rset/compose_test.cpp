// A resource set made from its parts, and the short text form.

#include "core/rset/compose.hpp"

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/rset/short_form.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

TEST_CASE("the short form names ranks, cores and gpus") {
  const ResourceSet set({{IdSet::parse("0-1"), IdSet::parse("0-3"), IdSet{0}}, {IdSet{2}, IdSet{0}, {}}},
                        Hostlist::parse("a,b,c"));
  CHECK(short_form(set) == "rank[0-1]/core[0-3],gpu0 rank2/core0");
  CHECK(short_form(IdSet(), IdSet::parse("1,3")) == "gpu[1,3]");
  CHECK(short_form(ResourceSet()).empty());
}

TEST_CASE("parts that are not given follow from the others") {
  const ResourceSet plain = compose({}, "here");
  CHECK(short_form(plain) == "rank0/core0");
  CHECK(plain.nodelist().encode() == "here");

  Composition parts;
  parts.hosts = Hostlist::parse("n[0-3]");
  CHECK(short_form(compose(parts, "here")) == "rank[0-3]/core0");
  parts.ranks = IdSet::parse("4-7");
  parts.cores = IdSet::parse("0-1");
  parts.gpus = IdSet{0};
  parts.properties = {"p", "q:5-6"};
  const ResourceSet set = compose(parts, "here");
  CHECK(short_form(set) == "rank[4-7]/core[0-1],gpu0");
  CHECK(set.host(5) == "n1");
  CHECK(set.properties() == ResourceSet::Properties{{"p", IdSet::parse("4-7")}, {"q", IdSet::parse("5-6")}});

  Composition ranks;
  ranks.ranks = IdSet::parse("0-2");
  CHECK(compose(ranks, "here").nodelist().encode() == Hostlist::parse("here,here,here").encode());
}

TEST_CASE("parts that do not fit are refused") {
  Composition parts;
  parts.hosts = Hostlist::parse("a,b");
  parts.ranks = IdSet{0};
  CHECK_THROWS_WITH_AS(static_cast<void>(compose(parts, "x")), "2 hosts for 1 ranks", Error);
  parts.ranks = IdSet();
  CHECK_THROWS_WITH_AS(static_cast<void>(compose(parts, "x")), "ranks: idset is empty", Error);
  parts.ranks = IdSet::parse("0-1");
  parts.cores = IdSet();
  CHECK_THROWS_WITH_AS(static_cast<void>(compose(parts, "x")), "rank 0 has neither cores nor gpus", Error);
  parts.cores = IdSet{0};
  parts.properties = {"p:2"};
  CHECK_THROWS_AS(static_cast<void>(compose(parts, "x")), Error);
  Composition huge;
  huge.ranks = IdSet::parse("0-4294967294");
  CHECK_THROWS_AS(static_cast<void>(compose(huge, "x")), Error);
}

}  // namespace
}  // namespace resourced::rset
