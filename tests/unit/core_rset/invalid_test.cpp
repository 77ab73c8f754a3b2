// Invalid R documents (RFC 20): each is refused with the JSON path of the fault, read as text or as a JSON
// value. The cost of hostile text is linear in its length.

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "vector_files.hpp"

namespace resourced::rset {
namespace {

using nlohmann::json;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.errnum() == EINVAL);
    return error.what();
  }
  return "no error";
}

/// An R of two ranks in which one execution key is replaced or, for "", left out.
std::string with(const std::string& key, const std::string& value) {
  json document = json::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}],"nodelist":["n[0-1]"]}})");
  if (value.empty()) {
    document["execution"].erase(key);
  } else {
    document["execution"][key] = json::parse(value);
  }
  return document.dump();
}

struct Invalid {
  std::string text;
  /// The beginning of the error text.
  std::string error;
};

/// The rows are in tests/vectors, as the tests in Python read them, too.
std::vector<Invalid> table() {
  std::vector<Invalid> rows;
  for (const json& row : json::parse(test::read_vector("spec_20/invalid.json")))
    rows.push_back({row.at("text"), row.at("error")});
  REQUIRE(rows.size() > 60);
  return rows;
}

TEST_CASE("what is not an R is refused with its path") {
  for (const Invalid& row : table()) {
    CAPTURE(row.text);
    const std::string as_text = error_of([&] { static_cast<void>(ResourceSet::parse(row.text)); });
    const std::string as_json =
        error_of([&] { static_cast<void>(ResourceSet::from_json(json::parse(row.text))); });
    CHECK(as_text.substr(0, row.error.size()) == row.error);
    CHECK(as_json == as_text);
    CHECK(as_text.find('\n') == std::string::npos);
  }
}

TEST_CASE("the valid document that the table varies is read") {
  CHECK(ResourceSet::parse(with("nslots", "1")).counts() == ResourceCounts{2, 8, 0});
}

TEST_CASE("a property name has none of the nine characters that RFC 20 forbids") {
  for (const char c : std::string("!&'\"^`|()")) {
    const json properties{{std::string("a") + c, "0"}};
    CAPTURE(c);
    CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(with("properties", properties.dump()))); }) !=
          "no error");
  }
  for (const char* name : {"amd-mi50@gpu", "+local", "caf\xc3\xa9", "a:b", "a,b", "#$%*;<=>?[]{}~"}) {
    const json properties{{name, "0"}};
    CAPTURE(name);
    CHECK(ResourceSet::parse(with("properties", properties.dump())).properties().contains(name));
  }
  ResourceSet set = ResourceSet::parse(with("nslots", "1"));
  CHECK(error_of([&] { set.add_property("a\xff", text::IdSet{0}); }) != "no error");
}

TEST_CASE("expiration comes after starttime when both are set, and 0 is unset") {
  struct Times {
    const char* start;
    const char* expiration;
    bool valid;
  };
  for (const Times& times :
       {Times{"0", "0", true}, Times{"5", "0", true}, Times{"0", "5", true}, Times{"5", "5.5", true},
        Times{"0.0", "0.0", true}, Times{"5", "5", false}, Times{"6.5", "6", false}}) {
    json document = json::parse(with("starttime", times.start));
    document["execution"]["expiration"] = json::parse(times.expiration);
    CAPTURE(document.dump());
    const std::string error = error_of([&] { static_cast<void>(ResourceSet::from_json(document)); });
    CHECK(error == (times.valid ? "no error" : "execution.expiration: is not after starttime"));
  }
}

TEST_CASE("numbers that are no times") {
  json document = json::parse(with("nslots", "1"));
  for (const double time :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    document["execution"]["expiration"] = time;
    CHECK(error_of([&] { static_cast<void>(ResourceSet::from_json(document)); }) ==
          "execution.expiration: is not a time");
  }
  CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(R"({"version":1e999})")); }).substr(0, 13) ==
        "R is not JSON");
}

TEST_CASE("ranks without hosts are refused at once, however many they are") {
  const std::string all = R"([{"rank":"0-4294967294","children":{"core":"0-4294967294"}}])";
  CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(with("R_lite", all))); }) ==
        "execution.nodelist: has 2 hosts for 4294967295 ranks");

  json hosts = json::array();
  for (int i = 0; i < 17; ++i) hosts.push_back("n[0-1048575]");
  json document = json::parse(with("R_lite", R"([{"rank":"0-17825791","children":{"core":"0"}}])"));
  document["execution"]["nodelist"] = hosts;
  CHECK(error_of([&] { static_cast<void>(ResourceSet::from_json(document)); }) ==
        "execution.R_lite: has more than 16777216 ranks");
}

TEST_CASE("text that is not JSON is refused with the number of the first wrong byte") {
  using namespace std::string_literals;
  const struct {
    std::string text;
    int byte;
  } rows[] = {{"", 1},
              {"{", 2},
              {R"({"version":1)", 13},
              {"{}x", 3},
              {"{\"version\":\x01}", 12},
              {R"({"a":"\x"})", 8},
              {R"({"a":1e999})", 6},
              {R"({"execution":{"R_lite":[{"rank" "0"}]}})", 33},
              {R"({"execution":{"R_lite":[{"rank":tru}]}})", 33},
              // Text that is not UTF-8, also where it comes after a complete document or a fault.
              {"\xff", 1},
              {"{\"a\":\"\xff\"}", 7},
              {"{\"a\" \"\xff\"}", 6},
              {"{\"execution\":{\"R_lite\":[{\"rank\":\"\xc3\"}]}}", 34},
              {with("nslots", "1") + "\xff", static_cast<int>(with("nslots", "1").size()) + 1},
              // Text after the end, including a NUL, and a byte order mark before the start.
              {with("nslots", "1") + "\0"s, static_cast<int>(with("nslots", "1").size()) + 1},
              {"\xef\xbb\xbf" + with("nslots", "1"), 1}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(row.text)); }) ==
          "R is not JSON: the text is wrong at byte " + std::to_string(row.byte));
  }
}

TEST_CASE("an entry that is wrong is named before text after it that is not JSON") {
  for (const char* value : {"0", "null", "[", "[1,2", "{", "{x"}) {
    const std::string text = R"({"version":1,"execution":{"R_lite":[{"rank":)" + std::string(value);
    CAPTURE(text);
    CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(text)); }) ==
          "execution.R_lite[0].rank: is not a string");
  }
}

TEST_CASE("nesting is limited wherever it stands") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const auto in_scheduling = [&](std::size_t levels) {
    return R"({"version":1,"execution":{"R_lite":[],"nodelist":[]},"scheduling":{"x":)" + nested(levels) +
           "}}";
  };
  const auto in_entry = [&](std::size_t levels) {
    return with("R_lite", R"([{"rank":"0-1","children":{"core":"0","x":)" + nested(levels) + "}}]");
  };
  const auto in_execution = [&](std::size_t levels) { return with("x", nested(levels)); };
  for (const std::string& deep : {in_scheduling(63), in_entry(63), in_execution(64)}) {
    CAPTURE(deep);
    const std::string text = ResourceSet::from_json(json::parse(deep)).encode();
    CHECK(ResourceSet::parse(text).encode() == text);
    CHECK(ResourceSet::parse(deep).encode() == text);
  }
  for (const std::string& deeper : {in_scheduling(64), in_entry(64), in_execution(65), in_entry(130)}) {
    CAPTURE(deeper);
    CHECK_THROWS_AS(static_cast<void>(ResourceSet::from_json(json::parse(deeper))), Error);
    CHECK_THROWS_AS(static_cast<void>(ResourceSet::parse(deeper)), Error);
  }
  CHECK(error_of([&] { static_cast<void>(ResourceSet::parse(in_scheduling(64))); }) ==
        "scheduling: is nested deeper than 64 levels");
  CHECK_THROWS_AS(static_cast<void>(ResourceSet::parse(nested(1000000))), Error);
  CHECK_THROWS_AS(static_cast<void>(ResourceSet::parse(std::string(1000000, '['))), Error);
}

TEST_CASE("entries that overlap in every possible way are refused before they take long") {
  json entries = json::array();
  for (int i = 0; i < 6000; ++i)
    entries.push_back({{"rank", std::to_string(i) + "-" + std::to_string(i + 100000)},
                       {"children", {{"core", std::to_string(2 * i)}}}});
  CHECK(error_of([&] {
          static_cast<void>(ResourceSet::parse(with("R_lite", entries.dump())));
        }).find("is one of too many ranks in several entries") != std::string::npos);
}

TEST_CASE("one wrong byte anywhere gives an R or an error, the same from text and from JSON") {
  const std::string good =
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3","gpu":"1","x":[{}]},"y":{"z":1}},)"
      R"({"children":{"core":"0"},"rank":"2"}],"nodelist":["n[0-1]","m"],"nslots":3,"properties":{"p":"0,2"},)"
      R"("starttime":1.5,"expiration":20},"scheduling":{"writer":"a:b","graph":{"nodes":[],"edges":[]}}})";
  REQUIRE_NOTHROW(static_cast<void>(ResourceSet::parse(good)));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char byte : std::string("0\"{}[],:-x\x80\0", 12)) {
      std::string text = good;
      text[at] = byte;
      CAPTURE(text);
      std::optional<ResourceSet> read;
      const std::string error = error_of([&] { read = ResourceSet::parse(text); });
      const json document = json::parse(text, nullptr, false);
      if (document.is_discarded()) {
        CHECK(error != "no error");
        continue;
      }
      std::optional<ResourceSet> from_json;
      CHECK(error_of([&] { from_json = ResourceSet::from_json(document); }) == error);
      CHECK(read == from_json);
    }
  }
}

TEST_CASE("a key that stands twice counts once") {
  const ResourceSet set =
      ResourceSet::parse(R"({"version":1,"execution":{"R_lite":[{"rank":"5","children":{"core":"5"}}],)"
                         R"("R_lite":[{"rank":"0","rank":"1","children":{"core":"7"}}],"nodelist":["a"]}})");
  CHECK(set.ranks() == text::IdSet{1});

  const std::string text =
      with("R_lite", R"([{"rank":"0-1","children":{"core":"0","gpu":"7","x":1},"y":1}])");
  std::string twice = text;
  twice.replace(twice.find(R"("children")"), 0, R"("children":{"core":"1","gpu":"2","z":2},)");
  CHECK(ResourceSet::parse(twice) == ResourceSet::parse(text));
  twice = with("R_lite", R"([{"rank":"0-1","children":{"core":"0"}}])");
  twice.replace(twice.find(R"("children")"), 0, R"("children":{"core":"1","gpu":"2","z":2},)");
  CHECK(ResourceSet::parse(twice) == ResourceSet::from_json(json::parse(twice)));
  CHECK(ResourceSet::parse(twice).counts() == ResourceCounts{2, 2, 0});
}

TEST_CASE("the numbers of a carried key are those of the JSON library") {
  for (const char* number :
       {"18446744073709551615", "18446744073709551616", "-9223372036854775809", "1e-999", "-0.0", "-1e-999",
        "4.9e-324", "1.7976931348623157e308", "123456789012345678901234567890.5"}) {
    const std::string text = R"({"version":1,"execution":{"R_lite":[],"nodelist":[]},"attributes":{"x":)" +
                             std::string(number) + "}}";
    CAPTURE(text);
    CHECK(ResourceSet::parse(text).encode() == ResourceSet::from_json(json::parse(text)).encode());
  }
}

}  // namespace
}  // namespace resourced::rset
