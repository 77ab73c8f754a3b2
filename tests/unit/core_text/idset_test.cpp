// IdSet against RFC 22 and against std::set under random operations.

#include "core/text/idset.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "reason_of.hpp"
#include "vector_files.hpp"

using nlohmann::json;
using resourced::Error;
using resourced::test::read_vector;
using resourced::test::reason_of;
using resourced::text::IdSet;
using Id = IdSet::Id;

namespace {

std::vector<Id> members(const IdSet& ids) {
  std::vector<Id> list;
  ids.for_each([&](Id id) { list.push_back(id); });
  return list;
}

std::string encode(const std::set<Id>& ids) {
  std::string text;
  for (auto at = ids.begin(); at != ids.end();) {
    const Id first = *at;
    Id last = first;
    while (++at != ids.end() && *at == last + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last != first) text += '-' + std::to_string(last);
  }
  return text;
}

IdSet every_other(Id first, Id last) {
  IdSet ids;
  for (Id id = first; id <= last; id += 2) ids.insert(id);
  return ids;
}

}  // namespace

// The rows are in tests/vectors, as the tests in Python read them, too.
TEST_CASE("RFC 22: accepted texts and their canonical form") {
  const auto rows = json::parse(read_vector("spec_22/idset.json")).at("accepted");
  REQUIRE(rows.size() > 10);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    const auto expected = row.at("ids").get<std::vector<Id>>();
    const IdSet ids = IdSet::parse(row.at("text").get<std::string>());
    CHECK(ids.encode() == row.at("canonical").get<std::string>());
    CHECK(members(ids) == expected);
    CHECK(ids.count() == expected.size());
    CHECK(ids.empty() == expected.empty());
  }
}

TEST_CASE("RFC 22: rejected texts, with the text and the reason in the error") {
  const auto rows = json::parse(read_vector("spec_22/idset.json")).at("rejected");
  REQUIRE(rows.size() > 30);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    const std::string reason = reason_of<IdSet>(row.at("text").get<std::string>());
    CHECK(reason.find(" is not an idset: ") != std::string::npos);
    CHECK_MESSAGE(reason.find(row.at("reason").get<std::string>()) != std::string::npos, reason);
    CHECK(reason.find('\0') == std::string::npos);
  }
}

TEST_CASE("an error shows the beginning of a long text, in one line") {
  for (const std::string& text :
       {std::string(100'000, '['), std::string(100'000, '0'), "1," + std::string(100'000, '9'),
        std::string(100'000, '\n'), std::string(100'000, '1') + "-2"}) {
    const std::string reason = reason_of<IdSet>(text);
    CHECK(reason.size() < 700);
    CHECK(reason.find("...\" is not an idset: ") != std::string::npos);
    CHECK(reason.find('\n') == std::string::npos);
  }
}

TEST_CASE("the largest range costs no more than the smallest") {
  IdSet all = IdSet::parse("0-4294967294");
  CHECK(all.count() == 4294967295);
  CHECK(all.contains(0));
  CHECK(all.contains(IdSet::max_id));
  for (const Id id : {Id{0}, Id{5}, Id{65535}, Id{65536}, Id{3'000'000'000}, IdSet::max_id}) {
    all.erase(id);
    CHECK_FALSE(all.contains(id));
  }
  CHECK(all.encode() == "1-4,6-65534,65537-2999999999,3000000001-4294967293");
  const IdSet ends{0, IdSet::max_id};
  CHECK(ends.encode() == "0,4294967294");
  CHECK((all | IdSet::parse("0,5,65535-65536,3000000000,4294967294")) == IdSet::range(0, IdSet::max_id));
  CHECK(IdSet::range(0, IdSet::max_id) - all == IdSet::parse("0,5,65535-65536,3000000000,4294967294"));
  all.erase(0, IdSet::max_id);
  CHECK(all.empty());
}

TEST_CASE("members and neighbours") {
  const IdSet ids = IdSet::parse("3,5-7,65530-65540,200000");
  CHECK(ids.first() == 3);
  CHECK(ids.last() == 200000);
  CHECK(ids.at_or_after(0) == 3);
  CHECK(ids.at_or_after(3) == 3);
  CHECK(ids.at_or_after(4) == 5);
  CHECK(ids.at_or_after(6) == 6);
  CHECK(ids.at_or_after(8) == 65530);
  CHECK(ids.at_or_after(65536) == 65536);
  CHECK(ids.at_or_after(65541) == 200000);
  CHECK(ids.at_or_after(200001) == std::nullopt);
  CHECK(IdSet{}.at_or_after(0) == std::nullopt);
  CHECK(members(ids).size() == ids.count());
  std::vector<IdSet::Range> ranges;
  ids.for_each_range([&](IdSet::Range range) { ranges.push_back(range); });
  CHECK(ranges == std::vector<IdSet::Range>{{3, 3}, {5, 7}, {65530, 65540}, {200000, 200000}});
  std::string text = "ranks ";
  ids.encode_to(text);
  CHECK(text == "ranks 3,5-7,65530-65540,200000");
  CHECK(IdSet{9, 2, 3, 2, 1}.encode() == "1-3,9");
}

TEST_CASE("set algebra on small sets") {
  struct Row {
    const char* a;
    const char* b;
    const char* unite;
    const char* intersect;
    const char* subtract;
    bool intersects;
    bool includes;
  };
  const std::vector<Row> rows = {
      {"", "", "", "", "", false, true},
      {"1-3", "", "1-3", "", "1-3", false, true},
      {"", "1-3", "1-3", "", "", false, false},
      {"0-9", "2,4-5", "0-9", "2,4-5", "0-1,3,6-9", true, true},
      {"0-9", "10-12", "0-12", "", "0-9", false, false},
      {"1,3,5", "0,2,4", "0-5", "", "1,3,5", false, false},
      {"1,3,5", "3,5", "1,3,5", "3,5", "1", true, true},
      {"1,3,5", "3-5", "1,3-5", "3,5", "1", true, false},
      {"0-200000", "65535-65536", "0-200000", "65535-65536", "0-65534,65537-200000", true, true},
      {"0-65535", "65536-131071", "0-131071", "", "0-65535", false, false},
      {"1,3,65536", "65535-70000", "1,3,65535-70000", "65536", "1,3", true, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.a);
    CAPTURE(row.b);
    const IdSet a = IdSet::parse(row.a);
    const IdSet b = IdSet::parse(row.b);
    CHECK((a | b).encode() == row.unite);
    CHECK((b | a).encode() == row.unite);
    CHECK((a & b).encode() == row.intersect);
    CHECK((b & a).encode() == row.intersect);
    CHECK((a - b).encode() == row.subtract);
    CHECK(a.intersects(b) == row.intersects);
    CHECK(b.intersects(a) == row.intersects);
    CHECK(a.includes(b) == row.includes);
  }
}

TEST_CASE("a set combined with itself") {
  const IdSet original = IdSet::parse("1,3,5-9,65536,70000-300000");
  IdSet ids = original;
  const IdSet& same = ids;
  CHECK((ids |= same) == original);
  CHECK((ids &= same) == original);
  CHECK(ids.includes(same));
  CHECK((ids -= same).empty());
}

TEST_CASE("equality does not depend on how a set came to be") {
  const IdSet sparse = IdSet::parse("1,3,5,7");
  IdSet shrunk = every_other(1, 65535);
  shrunk.erase(8, 65535);
  CHECK(shrunk == sparse);

  // Sizes at which a set that lost runs still has another form than one that was built with this size.
  for (const Id runs : {400U, 513U, 700U, 1000U, 1024U, 1025U}) {
    IdSet down = every_other(0, 8000);
    for (Id id = 8000; id >= 2 * runs; id -= 2) down.erase(id);
    const IdSet up = every_other(0, 2 * runs - 2);
    CHECK(down == up);
    CHECK(up == down);
    CHECK(down.count() == runs);
    down.erase(10);
    CHECK_FALSE(down == up);
    down.insert(11);
    CHECK_FALSE(down == up);
  }

  IdSet filled = every_other(0, 131070);
  filled |= every_other(1, 131071);
  CHECK(filled == IdSet::range(0, 131071));
}

TEST_CASE("ranges that touch become one in any order") {
  // Pieces of one range without gaps that meet inside a block and at the edges of blocks, and a set with gaps
  // beside it.
  std::vector<IdSet::Range> pieces = {
      {0, 65535}, {65536, 65540}, {65541, 131071}, {131072, 131072}, {131073, 400000}};
  const auto by_first = [](IdSet::Range a, IdSet::Range b) { return a.first < b.first; };
  do {
    IdSet ids{500000};
    for (const IdSet::Range piece : pieces) ids.insert(piece.first, piece.last);
    CHECK(ids == (IdSet::range(0, 400000) | IdSet{500000}));
    IdSet left = IdSet::range(0, 400000);
    for (const IdSet::Range piece : pieces) left.erase(piece.first, piece.last);
    CHECK(left.empty());
  } while (std::next_permutation(pieces.begin(), pieces.end(), by_first));
}

TEST_CASE("ids are erased from either end of a range, until none is left") {
  // The first range spans blocks; the second one shares no block with it.
  IdSet ids = IdSet::range(65535, 131073) | IdSet::range(200000, 200002);
  ids.erase(65535);
  CHECK(ids == (IdSet::range(65536, 131073) | IdSet::range(200000, 200002)));
  ids.erase(131073);
  ids.erase(131072);
  CHECK(ids == (IdSet::range(65536, 131071) | IdSet::range(200000, 200002)));
  ids.erase(200001);
  CHECK(ids == (IdSet::range(65536, 131071) | IdSet{200000, 200002}));
  for (const Id id : {200002U, 200000U}) ids.erase(id);
  CHECK(ids == IdSet::range(65536, 131071));
  IdSet one{7};
  one.erase(6);
  one.erase(8);
  CHECK(one == IdSet{7});
  one.erase(7);
  CHECK(one.empty());
}

TEST_CASE("random operations agree with std::set") {
  struct Universe {
    const char* name;
    std::vector<Id> bases;
    Id width;
    int steps;
  };
  const std::vector<Universe> universes = {
      {"small", {0}, 60, 6000},
      {"around the edges of blocks", {65500, 131040, 4294967200}, 80, 6000},
      {"many runs in a block", {65536}, 6000, 6000},
      {"across blocks", {60000}, 12000, 3000},
  };
  for (const Universe& universe : universes) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      CAPTURE(universe.name);
      CAPTURE(seed);
      std::mt19937 random(seed);
      const auto any = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
      };
      const auto any_id = [&] {
        return universe.bases[any(universe.bases.size())] + static_cast<Id>(any(universe.width));
      };
      IdSet ids;
      std::set<Id> model;
      bool right = true;
      for (int step = 0; step < universe.steps && right; ++step) {
        CAPTURE(step);
        const Id id = any_id();
        // Long stretches of mostly inserting and mostly erasing drive the set through all its forms.
        const bool inserting = any(8) < (step / 1500 % 2 == 0 ? 7U : 1U);
        const Id last =
            any(20) == 0 ? std::min(id + static_cast<Id>(any(universe.width / 20)), IdSet::max_id) : id;
        if (inserting) {
          id == last ? ids.insert(id) : ids.insert(id, last);
          for (Id i = id; i <= last; ++i) model.insert(i);
        } else {
          id == last ? ids.erase(id) : ids.erase(id, last);
          model.erase(model.lower_bound(id), model.upper_bound(last));
        }
        right = ids.count() == model.size() && ids.contains(id) == inserting;
        const Id probe = any_id();
        const auto next = model.lower_bound(probe);
        right = right &&
                ids.at_or_after(probe) == (next == model.end() ? std::nullopt : std::optional<Id>(*next));
        if (!model.empty()) right = right && ids.first() == *model.begin() && ids.last() == *model.rbegin();
        if (step % 50 == 0) {
          right = right && ids.encode() == encode(model);
          right = right && IdSet::parse(ids.encode()) == ids;
        }
        CHECK(right);
      }
    }
  }
}

TEST_CASE("one id or one range on either side of an operation") {
  IdSet ids = IdSet::parse("5-9,65530-65545,200000");
  for (Id id = 131072; id < 140000; id += 3) ids.insert(id);
  const std::vector<IdSet::Range> ranges = {{0, 0},           {5, 5},           {4, 10},
                                            {65535, 65536},   {131072, 131072}, {131073, 131073},
                                            {131070, 150000}, {199999, 200001}, {0, IdSet::max_id}};
  for (const auto& [first, last] : ranges) {
    CAPTURE(first);
    CAPTURE(last);
    const IdSet range = IdSet::range(first, last);
    std::set<Id> within;
    std::set<Id> without;
    ids.for_each([&](Id id) { (id < first || id > last ? without : within).insert(id); });
    CHECK((ids & range).encode() == encode(within));
    CHECK((range & ids).encode() == encode(within));
    CHECK((ids - range).encode() == encode(without));
    CHECK((range - ids) == (IdSet::range(0, IdSet::max_id) - ids) - (IdSet::range(0, IdSet::max_id) - range));
    CHECK((ids | range).count() == without.size() + last - first + 1);
    CHECK((ids | range) == (range | ids));
  }
}

TEST_CASE("the laws of set algebra hold for sets of every shape") {
  // Sets are unions of cells between cut points, so the model is a set of cell numbers, although the ranges
  // cover the whole space of ids.
  for (const unsigned seed : {11U, 12U, 13U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto any = [&](std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    std::set<Id> points{0, IdSet::max_id};
    for (int i = 0; i < 60; ++i) {
      points.insert(static_cast<Id>(any(IdSet::max_id)));
      points.insert(static_cast<Id>(any(5) * 65536 + any(3)));
      points.insert(static_cast<Id>(70000 + any(400)));
    }
    for (Id id = 200000; id < 205000; ++id) points.insert(id);
    const std::vector<Id> cut(points.begin(), points.end());
    const std::size_t cells = cut.size() - 1;

    const auto some = [&] {
      std::set<Id> model;
      const std::size_t part = 1 + any(10);
      const std::size_t from = any(cells);
      const std::size_t to = from + any(cells - from);
      for (std::size_t cell = from; cell < to; ++cell) {
        if (any(10) < part) model.insert(static_cast<Id>(cell));
      }
      return model;
    };
    const auto to_ids = [&](const std::set<Id>& model) {
      IdSet ids;
      for (const Id cell : model) ids.insert(cut[cell], cut[cell + 1] - 1);
      return ids;
    };
    for (int round = 0; round < 60; ++round) {
      CAPTURE(round);
      const std::set<Id> model_a = some();
      const std::set<Id> model_b = some();
      const IdSet a = to_ids(model_a);
      const IdSet b = to_ids(model_b);
      std::set<Id> both;
      std::set<Id> either;
      std::set<Id> left;
      std::set_intersection(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                            std::inserter(both, both.end()));
      std::set_union(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                     std::inserter(either, either.end()));
      std::set_difference(model_a.begin(), model_a.end(), model_b.begin(), model_b.end(),
                          std::inserter(left, left.end()));
      CHECK((a & b) == to_ids(both));
      CHECK((a | b) == to_ids(either));
      CHECK((a - b) == to_ids(left));
      CHECK((a | b) == (b | a));
      CHECK((a & b) == (b & a));
      CHECK(((a - b) | (a & b)) == a);
      CHECK(((a | b) - b) == (a - b));
      CHECK((a | b).count() + (a & b).count() == a.count() + b.count());
      CHECK(a.intersects(b) == !both.empty());
      CHECK(a.first_shared(b) == (both.empty() ? std::nullopt : std::optional(cut[*both.begin()])));
      CHECK(a.includes(b) == (either == model_a));
      CHECK((a | b).includes(b));
      CHECK(a.includes(a & b));
      CHECK((a == b) == (model_a == model_b));
      CHECK(IdSet::parse(a.encode()) == a);
      CHECK(IdSet::parse("[" + (a | b).encode() + "]") == (a | b));
    }
  }
}

TEST_CASE("ids far apart take parts of their own") {
  IdSet ids;
  std::set<Id> model;
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const Id id = std::uniform_int_distribution<Id>(0, IdSet::max_id)(random);
    ids.insert(id);
    model.insert(id);
  }
  CHECK(ids.encode() == encode(model));
  for (auto at = model.begin(); at != model.end();) {
    ids.erase(*at);
    at = model.erase(at);
    if (at != model.end()) ++at;
  }
  CHECK(ids.encode() == encode(model));
}
