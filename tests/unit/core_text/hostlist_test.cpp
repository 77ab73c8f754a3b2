// Hostlist against RFC 29 and against a vector of strings under random operations.

#include "core/text/hostlist.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "reason_of.hpp"
#include "vector_files.hpp"

using nlohmann::json;
using resourced::Error;
using resourced::test::read_vector;
using resourced::test::reason_of;
using resourced::text::Hostlist;
using resourced::text::IdSet;
using Names = std::vector<std::string>;

namespace {

Names expand(const Hostlist& hosts) {
  Names names;
  hosts.for_each([&](std::string_view host) { names.emplace_back(host); });
  return names;
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

Hostlist appended(const Names& names) {
  Hostlist hosts;
  for (const std::string& name : names) hosts.append(name);
  return hosts;
}

}  // namespace

// The rows are in tests/vectors, as the tests in Python read them, too.
TEST_CASE("RFC 29: expressions and the lists that they stand for") {
  const auto rows = json::parse(read_vector("spec_29/hostlist.json")).at("expanded");
  REQUIRE(rows.size() > 20);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    const auto expected = row.at("hosts").get<Names>();
    const Hostlist hosts = Hostlist::parse(row.at("text").get<std::string>());
    CHECK(expand(hosts) == expected);
    CHECK(hosts.size() == expected.size());
    CHECK(hosts.empty() == expected.empty());
    CHECK(Hostlist::parse(hosts.encode()) == hosts);
    CHECK(hosts == appended(expected));
    CHECK(hosts == Hostlist::parse(joined(expected)));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(hosts.at(i) == expected[i]);
  }
}

TEST_CASE("RFC 29: encoding compresses neighbours and keeps the order") {
  const auto rows = json::parse(read_vector("spec_29/hostlist.json")).at("encoded");
  REQUIRE(rows.size() > 30);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    const auto canonical = row.at("canonical").get<std::string>();
    CHECK(Hostlist::parse(row.at("text").get<std::string>()).encode() == canonical);
    CHECK(Hostlist::parse(canonical).encode() == canonical);
  }
}

TEST_CASE("RFC 29: errors show the text, the reason and the place") {
  struct Row {
    std::string text;
    std::string reason;
    int errnum = EINVAL;
  };
  std::vector<Row> rows = {
      {std::string(1025, 'x'), "the name is too long at character 1"},
      {"foo[" + std::string(5000, '0') + "1-2]", "the name is too long"},
      {"foo[1-2]" + std::string(1100, 'x'), "the name is too long at character 9"},
  };
  const auto listed = json::parse(read_vector("spec_29/hostlist.json")).at("rejected");
  for (const json& row : listed)
    rows.push_back({row.at("text"), row.at("reason"), row.at("range") ? ERANGE : EINVAL});
  REQUIRE(rows.size() > 35);
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string reason = reason_of<Hostlist>(row.text, row.errnum);
    CHECK(reason.find(" is not a hostlist: ") != std::string::npos);
    CHECK_MESSAGE(reason.find(row.reason) != std::string::npos, reason);
    CHECK(reason.size() < 700);
    CHECK(reason.find('\n') == std::string::npos);
  }
  for (const std::string& text : {std::string(100'000, '['), "foo[" + std::string(100'000, '9') + "]",
                                  "foo[" + std::string(100'000, '0') + "]", std::string(100'000, ',')}) {
    const std::string reason = reason_of<Hostlist>(text);
    CHECK(reason.size() < 700);
    CHECK(reason.find("...\" is not a hostlist: ") != std::string::npos);
  }
}

TEST_CASE("one expression holds at most 2^20 hosts, a list more") {
  const Hostlist full = Hostlist::parse("foo[0-1048575]");
  CHECK(full.size() == 1048576);
  Hostlist more = Hostlist::parse("foo[0-1048575],foo[1048576-1048580],bar,foo[1-3]");
  CHECK(more.size() == 1048576 + 5 + 4);
  CHECK(more.at(1048576) == "foo1048576");
  CHECK(more.encode() == "foo[0-1048575],foo[1048576-1048580],bar,foo[1-3]");
  CHECK(Hostlist::parse(more.encode()) == more);

  std::string text = "foo[0-1048575]";
  for (int i = 1; i < 4095; ++i) text += ",foo[0-1048575]";
  Hostlist largest = Hostlist::parse(text);
  CHECK(largest.size() == std::size_t{4095} << 20);
  CHECK(largest.at(largest.size() - 1) == "foo1048575");
  CHECK_THROWS_AS(largest.append(full), Error);
  CHECK(largest.size() == std::size_t{4095} << 20);
  CHECK(reason_of<Hostlist>(text + ",foo[0-1048575]", ERANGE).find("at most 4294967295") !=
        std::string::npos);

  CHECK_THROWS_AS(largest.sort(), Error);
  CHECK(largest.size() == std::size_t{4095} << 20);
  largest.unique();
  CHECK(largest == full);
}

// The following texts expand to thousands of millions of hosts: a sort of single hosts would exceed the time
// of a test and the memory of a machine.
TEST_CASE("ranges that overlap are merged by parts, however many hosts they stand for") {
  std::string ranges;
  std::string points;
  std::string sorted;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const std::uint64_t first = i << 20;
    const std::uint64_t last = first + 1048575;
    ranges += fmt::format("n[{}-{}],", first, last);
    points += fmt::format("{}n{}-eth0", i > 0 ? "," : "", first + 7);
    sorted += fmt::format("{}n[{}-{}],n{}-eth0,n[{}-{}]", i > 0 ? "," : "", first, first + 7, first + 7,
                          first + 8, last);
  }
  const Hostlist expected = Hostlist::parse(sorted);
  Hostlist hosts = Hostlist::parse(ranges + points);
  hosts.sort();
  CHECK(hosts.size() == (std::size_t{4000} << 20) + 4000);
  CHECK(hosts == expected);
  hosts.unique();
  CHECK(hosts == expected);
}

TEST_CASE("ranges that fall into too many parts are refused before the parts fill the memory") {
  const auto refused = [](const std::string& text) {
    CAPTURE(text.substr(0, 40));
    Hostlist hosts = Hostlist::parse(text);
    CHECK_THROWS_WITH_AS(hosts.sort(), "too many hosts in ranges that overlap to sort them", Error);
    CHECK_THROWS_WITH_AS(hosts.unique(), "too many hosts in ranges that overlap to sort them", Error);
    CHECK(hosts == Hostlist::parse(text));
  };
  // In sorted order this has three million parts, as each number has three suffixes.
  refused("n[0-1048575]-a,n[0-1048575]-b,n[0-1048575]-c");
  // Names of a thousand characters: 200,000 of them take 200 MB.
  const std::string prefix(1000, 'p');
  refused(prefix + "[0-99999]-a," + prefix + "[0-99999]-b");
}

TEST_CASE("append takes host names only and leaves the list alone otherwise") {
  Hostlist hosts = Hostlist::parse("foo[1-2]");
  for (const std::string& name : Names{"", " ", "foo bar", "foo,bar", "foo[1]", "foo]", "f\xc3\xb6o", "foo\n",
                                       std::string("\0", 1), std::string(1025, 'x')}) {
    CAPTURE(name);
    CHECK_THROWS_AS(hosts.append(name), Error);
    CHECK(hosts.encode() == "foo[1-2]");
  }
  hosts.append("foo3");
  hosts.append(Hostlist::parse("foo[4-5],bar"));
  hosts.append(hosts);
  CHECK(hosts.encode() == "foo[1-5],bar,foo[1-5],bar");
}

TEST_CASE("find and HostIndex give the first position") {
  const Hostlist hosts = Hostlist::parse(
      "foo[1-3],foo[2-9],bar,foo[08-11],foo[010-012],foo12-eth2,foo[0-4]-eth2,foo4-eth[0-9],foo[1-3]0,x,bar");
  const Names names = expand(hosts);
  const resourced::text::HostIndex index(hosts);
  Names probes = names;
  for (const char* other : {"",         "foo",      "foo0",      "foo00",      "foo012",
                            "foo0012",  "foo12",    "foo5-eth2", "foo4-eth10", "foo4-eth",
                            "-eth2",    "foo-eth2", "foo40",     "fo",         "bar1",
                            "y",        "xx",       "0",         "9",          "foo99999999999999999999999",
                            "foo[1-3]", "foo1,foo2"})
    probes.emplace_back(other);
  for (const std::string& probe : probes) {
    CAPTURE(probe);
    const auto at = std::find(names.begin(), names.end(), probe);
    const auto expected =
        at == names.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - names.begin()));
    CHECK(hosts.find(probe) == expected);
    CHECK(index.find(probe) == expected);
  }
  CHECK(resourced::text::HostIndex().find("foo") == std::nullopt);
}

TEST_CASE("select") {
  const Hostlist hosts = Hostlist::parse("foo[0-9],bar,foo[08-11]-x,baz3");
  CHECK(hosts.select(IdSet::parse("")).empty());
  CHECK(hosts.select(IdSet::parse("2-4,9-11")).encode() == "foo[2-4,9],bar,foo08-x");
  CHECK(hosts.select(IdSet::parse("12-15")).encode() == "foo[09-11]-x,baz3");
  CHECK(hosts.select(IdSet::parse("13-14")).encode() == "foo[10-11]-x");
  CHECK(hosts.select(IdSet::parse("0-15")) == hosts);
}

TEST_CASE("sort orders by prefix, then number, then suffix; unique drops repeats") {
  struct Row {
    const char* text;
    const char* sorted;
    const char* unique;
  };
  const std::vector<Row> rows = {
      {"", "", ""},
      {"foo3,foo2,foo1", "foo[1-3]", "foo[1-3]"},
      {"foo10,foo9,foo1", "foo[1,9-10]", "foo[1,9-10]"},
      {"foo2,foo1,foo2", "foo[1-2,2]", "foo[1-2]"},
      {"foo[1-3],foo[2-4]", "foo[1-2,2-3,3-4]", "foo[1-4]"},
      {"foo1,bar2,foo,bar1", "bar[1-2],foo,foo1", "bar[1-2],foo,foo1"},
      {"foo-a1,foo2,foo,fooa", "foo,foo2,foo-a1,fooa", "foo,foo2,foo-a1,fooa"},
      {"foo2-b,foo2-a,foo1-b,foo10-a", "foo1-b,foo2-a,foo2-b,foo10-a", "foo1-b,foo2-a,foo2-b,foo10-a"},
      {"foo[0-2]-eth2,foo1-eth1", "foo0-eth2,foo1-eth[1-2],foo2-eth2", "foo0-eth2,foo1-eth[1-2],foo2-eth2"},
      {"foo01,foo1,foo2,foo02", "foo1,foo01,foo2,foo02", "foo1,foo01,foo2,foo02"},
      {"foo[10-12],foo[08-11]", "foo[08-10,10-11,11-12]", "foo[08-12]"},
      {"foo1-eth[1-2],foo[1-2]-eth2", "foo1-eth[1-2],foo[1-2]-eth2", "foo1-eth[1-2],foo2-eth2"},
      {"b,a,b,a", "a,a,b,b", "a,b"},
      {"b[1-5],a[1-5]", "a[1-5],b[1-5]", "a[1-5],b[1-5]"},
      // Digits that do not fit into one number are compared as one number nevertheless.
      {"x11100000000000000000[1-2],x1115", "x1115,x111[000000000000000001-000000000000000002]",
       "x1115,x111[000000000000000001-000000000000000002]"},
      {"x2y10,x2y9,x1y11", "x1y11,x2y[9-10]", "x1y11,x2y[9-10]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    Hostlist sorted = Hostlist::parse(row.text);
    sorted.sort();
    CHECK(sorted.encode() == row.sorted);
    sorted.sort();
    CHECK(sorted.encode() == row.sorted);
    Hostlist unique = Hostlist::parse(row.text);
    unique.unique();
    CHECK(unique.encode() == row.unique);
  }
}

TEST_CASE("equality is about the hosts and not about the expressions") {
  CHECK(Hostlist::parse("foo[1-3]") == Hostlist::parse("foo1,foo[2-3]"));
  CHECK(Hostlist::parse("foo[1-2]-eth2") == Hostlist::parse("foo1-eth[2],foo2-eth[2]"));
  CHECK(Hostlist::parse("foo[8-11]0") == Hostlist::parse("foo80,foo90,foo100,foo110"));
  CHECK_FALSE(Hostlist::parse("foo[1-3]") == Hostlist::parse("foo[3,2,1]"));
  CHECK_FALSE(Hostlist::parse("foo[1-3]") == Hostlist::parse("foo[1-4]"));
  CHECK_FALSE(Hostlist::parse("foo[1-3]") == Hostlist::parse("foo[01-3]"));
  CHECK_FALSE(Hostlist::parse("foo[1-3]") == Hostlist::parse("bar[1-3]"));
  CHECK_FALSE(Hostlist::parse("foo") == Hostlist::parse("foo0"));
}

TEST_CASE("random lists agree with vectors of strings") {
  struct Order {
    bool operator()(const std::string& a, const std::string& b) const { return key(a) < key(b); }
    // The sort key of a name: text before a number, the number, its length, and so on; the end sorts first,
    // text last.
    static std::vector<std::tuple<int, std::string, std::uint64_t, std::size_t>> key(
        const std::string& name) {
      std::vector<std::tuple<int, std::string, std::uint64_t, std::size_t>> parts;
      for (std::size_t at = 0; at < name.size();) {
        const bool number = std::isdigit(static_cast<unsigned char>(name[at])) != 0;
        if (!number) {
          parts.emplace_back(2, std::string(1, name[at++]), 0, 0);
          continue;
        }
        const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
        parts.emplace_back(1, "", std::stoull(name.substr(at, end - at)), end - at);
        at = end;
      }
      return parts;
    }
  };
  for (const unsigned seed : {21U, 22U, 23U, 24U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto any = [&](std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    const auto number = [&] {
      std::string digits = std::to_string(any(any(2) == 0 ? 12 : 120));
      if (any(4) == 0) digits.insert(0, any(3), '0');
      return digits;
    };
    const auto expression = [&]() -> std::string {
      const Names prefixes = {"foo", "foo", "foo", "bar", "", "foo1", "a0", "x1-y"};
      const Names suffixes = {"", "", "", "-x", "-eth2", "1"};
      const std::string prefix = prefixes[any(prefixes.size())];
      const std::string suffix = suffixes[any(suffixes.size())];
      if (any(10) == 0) return prefix + "z";
      if (any(2) == 0) return prefix + number() + suffix;
      const std::size_t first = any(110);
      const std::string padding(any(3) == 0 ? any(3) : 0, '0');
      return prefix + "[" + padding + std::to_string(first) + "-" + std::to_string(first + any(15)) + "]" +
             suffix;
    };
    for (int round = 0; round < 150; ++round) {
      CAPTURE(round);
      std::string text;
      Hostlist built;
      Names model;
      for (std::size_t i = 1 + any(12); i > 0; --i) {
        const std::string one = expression();
        text += (text.empty() ? "" : ",") + one;
        const Hostlist part = Hostlist::parse(one);
        for (const std::string& name : expand(part)) model.push_back(name);
        built.append(part);
      }
      CAPTURE(text);
      const Hostlist hosts = Hostlist::parse(text);
      CHECK(expand(hosts) == model);
      CHECK(expand(built) == model);
      CHECK(hosts == built);
      CHECK(hosts == appended(model));
      CHECK(hosts.size() == model.size());
      CAPTURE(hosts.encode());
      CHECK(expand(Hostlist::parse(hosts.encode())) == model);
      CHECK(Hostlist::parse(hosts.encode()).encode() == hosts.encode());

      // Compare some hosts in the middle with those at each place of the same list.
      const std::size_t length = any(std::min<std::size_t>(model.size(), 4) + 1);
      const std::size_t part = any(model.size() - length + 1);
      for (std::size_t other = 0; other + length <= model.size(); ++other) {
        CAPTURE(other);
        CHECK(hosts.matches(part, built, other, length) ==
              std::equal(model.begin() + static_cast<std::ptrdiff_t>(part),
                         model.begin() + static_cast<std::ptrdiff_t>(part + length),
                         model.begin() + static_cast<std::ptrdiff_t>(other)));
      }

      const resourced::text::HostIndex index(hosts);
      for (int probe = 0; probe < 10; ++probe) {
        const std::string name = any(2) == 0 ? model[any(model.size())] : "foo" + number();
        CAPTURE(name);
        const auto at = std::find(model.begin(), model.end(), name);
        const auto expected =
            at == model.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - model.begin()));
        CHECK(hosts.find(name) == expected);
        CHECK(index.find(name) == expected);
        const std::size_t position = any(model.size());
        CHECK(hosts.at(position) == model[position]);
      }

      IdSet positions;
      Names chosen;
      for (std::size_t i = 0; i < model.size(); ++i) {
        if (any(3) == 0) continue;
        positions.insert(static_cast<IdSet::Id>(i));
        chosen.push_back(model[i]);
      }
      CHECK(expand(hosts.select(positions)) == chosen);
      CHECK((hosts == appended(chosen)) == (model == chosen));

      Hostlist sorted = hosts;
      sorted.sort();
      std::sort(model.begin(), model.end(), Order());
      CHECK(expand(sorted) == model);
      Hostlist unique = hosts;
      unique.unique();
      model.erase(std::unique(model.begin(), model.end()), model.end());
      CHECK(expand(unique) == model);
    }
  }
}
