// JSON text to values: the same values as the JSON library, within limits.
#include "core/json/reader.hpp"

#include <random>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace resourced::json_text {
namespace {

using nlohmann::json;
using namespace std::string_literals;

constexpr std::size_t deep = 64;

std::optional<json> read(std::string_view text, JsonManners manners = JsonManners::lenient) {
  auto result = read_json(text, deep, manners);
  if (auto* value = std::get_if<json>(&result)) return std::move(*value);
  return std::nullopt;
}

JsonFault fault_of(std::string_view text, JsonManners manners = JsonManners::strict) {
  auto result = read_json(text, deep, manners);
  REQUIRE(std::holds_alternative<JsonFault>(result));
  return std::get<JsonFault>(std::move(result));
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

/// Random values of all kinds, with strings that end at every distance from a word's boundary.
class RandomValues {
 public:
  explicit RandomValues(unsigned seed) : random_(seed) {}

  json value(int depth) {
    switch (random_() % (depth > 0 ? 9 : 7)) {
      case 0:
        return nullptr;
      case 1:
        return random_() % 2 == 0;
      case 2:
        return static_cast<std::int64_t>(random_()) >> random_() % 64;
      case 3:
        return random_() >> random_() % 64;
      case 4:
        return std::ldexp(static_cast<double>(random_()), static_cast<int>(random_() % 1900) - 1000);
      case 7: {
        json items = json::array();
        for (std::uint64_t n = random_() % 5; n > 0; --n) items.push_back(value(depth - 1));
        return items;
      }
      case 8: {
        json members = json::object();
        for (std::uint64_t n = random_() % 5; n > 0; --n) members[string()] = value(depth - 1);
        return members;
      }
      default:
        return string();
    }
  }

  std::uint64_t operator()() { return random_(); }

 private:
  std::string string() {
    static constexpr const char* pieces[] = {"a",          "\"", "\\", "\n", "\x1f",     "\x7f",
                                             "'",          "/",  "\t", " ",  "\xc3\xa9", "\xf0\x9f\x98\x80",
                                             "plain text", "0"};
    std::string text;
    for (std::uint64_t n = random_() % 12; n > 0; --n) {
      // Most strings have no special characters.
      text += random_() % 4 == 0 ? pieces[random_() % std::size(pieces)] : "x";
    }
    return text;
  }

  std::mt19937_64 random_;
};

TEST_CASE("a fault says at which byte reading ended") {
  const struct {
    std::string_view text;
    std::size_t at;
  } rows[] = {{"", 0},          {"{]", 1},    {"{} x", 3},           {"[1,]", 3},  {R"({"a" 1})", 5},
              {R"(["\x"])", 3}, {"[tru]", 1}, {R"({"a":1e999})", 5}, {R"("a)", 2}, {"[1 2]", 3}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(fault_of(row.text).at == row.at);
  }
}

TEST_CASE("bytes that are not UTF-8 are a fault where they stand") {
  using Kind = JsonFault::Kind;
  const struct {
    std::string_view text;
    Kind kind;
    std::size_t at;
  } rows[] = {{"\xff", Kind::utf8, 0},         {"[1]\xff", Kind::utf8, 3},
              {"[1] \x80", Kind::utf8, 4},     {"[\"\xed\xa0\x80\"]", Kind::utf8, 2},
              {"[\"\xc3\"]", Kind::utf8, 2},   {"[1 2, \"\xff\"]", Kind::syntax, 3},
              {"[1,\xc0\x80]", Kind::utf8, 3}, {"{\"\xff\":1}", Kind::utf8, 2},
              {"[tru\xff]", Kind::syntax, 1}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(fault_of(row.text).kind == row.kind);
    CHECK(fault_of(row.text).at == row.at);
  }
}

TEST_CASE("values are those of the JSON library") {
  constexpr unsigned seed = 5;
  CAPTURE(seed);
  RandomValues random(seed);
  for (int round = 0; round < 3000; ++round) {
    const json expected = random.value(5);
    const bool ascii = random() % 2 == 0;
    const int indent = static_cast<int>(random() % 3) - 1;
    const std::string text = expected.dump(indent, random() % 2 == 0 ? ' ' : '\t', ascii);
    CAPTURE(text);
    const auto value = read(text);
    REQUIRE(value);
    REQUIRE(*value == expected);
    // Equality does not distinguish 1 from 1.0, but the text does.
    REQUIRE(value->dump() == expected.dump());
  }
}

TEST_CASE("damaged text means what the JSON library says it means") {
  constexpr unsigned seed = 6;
  CAPTURE(seed);
  RandomValues random(seed);
  const std::string bytes = "{}[],:\"\\ 01.e-+tnu\xc3\xa9";
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = json(random.value(3)).dump();
    for (std::uint64_t n = random() % 3; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0 && text.size() > 1) {
        text.erase(at, 1);
      } else {
        text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    CAPTURE(text);
    const json expected = json::parse(text, nullptr, false);
    const auto value = read(text);
    if (expected.is_discarded()) {
      REQUIRE_FALSE(value);
    } else {
      REQUIRE(value);
      REQUIRE(*value == expected);
      ++taken;
    }
  }
  CHECK(taken > 5000);
}

TEST_CASE("numbers keep their kind") {
  CHECK(read("1")->is_number_unsigned());
  CHECK(read("-1")->is_number_integer());
  CHECK_FALSE(read("-1")->is_number_unsigned());
  CHECK(read("1.0")->is_number_float());
  CHECK(read("1e2")->is_number_float());
  CHECK(*read("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  CHECK(*read("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(std::signbit(read("-0.0")->get<double>()));
  for (const char* text :
       {"01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "1 2", "--1"}) {
    CAPTURE(text);
    CHECK_FALSE(read(text));
  }
}

TEST_CASE("what JSON leaves open is refused, with its place, or is not") {
  using Kind = JsonFault::Kind;
  using Place = std::vector<JsonFault::Step>;

  const char* twice = R"({"a":[0,{"b":1,"c":2,"b":3}]})";
  CHECK(read(twice) == json{{"a", {0, {{"b", 3}, {"c", 2}}}}});
  CHECK(fault_of(twice).kind == Kind::repeated_key);
  CHECK(fault_of(twice).place == Place{"b", std::size_t{1}, "a"});
  // A later object replaces the earlier one, and is not merged into it.
  CHECK(read(R"({"a":{"b":1},"a":{"c":2}})") == json{{"a", {{"c", 2}}}});

  const char* large = R"([1,{"a":18446744073709551616}])";
  CHECK(read(large) == json{1, {{"a", 18446744073709551616.0}}});
  CHECK(read(large)->dump() == json::parse(large).dump());
  CHECK(fault_of(large).kind == Kind::number);
  CHECK(fault_of(large).place == Place{"a", std::size_t{1}});
  CHECK(fault_of(large).number == "18446744073709551616");

  for (const JsonManners manners : {JsonManners::strict, JsonManners::lenient}) {
    CHECK(fault_of("[1e999]", manners).kind == Kind::number);
    CHECK(fault_of("[1e999]", manners).place == Place{std::size_t{0}});
  }
}

TEST_CASE("a number that is closer to 0 than any double is 0, or refused") {
  for (const char* text :
       {"1e-999", "1.5E-400", "0.001e-322", "123456e-999", "1e-99999999999999999999", "-1e-999"}) {
    CAPTURE(text);
    const json value = read(text).value();
    CHECK(value == 0.0);
    CHECK(value.is_number_float());
    CHECK(std::signbit(value.get<double>()) == (*text == '-'));
    CHECK(value.dump() == json::parse(text).dump());
    CHECK(fault_of(text).kind == JsonFault::Kind::number);
  }
  const std::string zeros(1000, '0');
  CHECK(*read("0." + zeros + "1") == 0.0);
  CHECK(*read("0." + zeros + "1e1001") == 1.0);
  for (const std::string& text : {"1e400"s, "0.001e400"s, "1e99999999999999999999"s, "-1e999"s,
                                  "1" + zeros + ".5", "0." + zeros + "1e1999"}) {
    CAPTURE(text);
    CHECK(fault_of(text, JsonManners::lenient).kind == JsonFault::Kind::number);
  }
}

// Does the same as JsonReader::value(), with the functions for callers that read part by part.
bool read_parts(JsonReader& reader, json& out) {
  switch (reader.next()) {
    case '{':
      out = json::object();
      return reader.object([&](std::string_view key) { return read_parts(reader, out[std::string(key)]); });
    case '[':
      out = json::array();
      return reader.array([&] { return read_parts(reader, out.emplace_back()); });
    case '"': {
      std::string text = "an earlier string";
      const bool is_string = reader.string(text);
      out = text;
      return is_string;
    }
    default:
      return reader.value(out);
  }
}

TEST_CASE("a text that is read part by part has the same values, limits and faults") {
  constexpr unsigned seed = 7;
  CAPTURE(seed);
  RandomValues random(seed);
  int read_whole = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = random.value(3).dump(static_cast<int>(random() % 2) - 1);
    if (random() % 2 == 0) text.erase(random() % text.size(), 1);
    const std::size_t depth = random() % 5;
    const std::size_t values = random() % 20;
    CAPTURE(text);
    CAPTURE(depth);
    CAPTURE(values);
    JsonReader reader(text, depth, JsonManners::lenient, values);
    json parts;
    const bool is_read = read_parts(reader, parts) && reader.at_end();
    const auto whole = read_json(text, depth, JsonManners::lenient, values);
    REQUIRE(is_read == std::holds_alternative<json>(whole));
    if (is_read) {
      REQUIRE(parts == std::get<json>(whole));
      ++read_whole;
    } else {
      const JsonFault fault = std::move(reader).fault();
      REQUIRE(fault.kind == std::get<JsonFault>(whole).kind);
      REQUIRE(fault.at == std::get<JsonFault>(whole).at);
    }
  }
  CHECK(read_whole > 2000);
}

TEST_CASE("a part of another kind than the caller reads is refused") {
  const auto reader_of = [](std::string_view text) { return JsonReader(text, deep, JsonManners::lenient); };
  std::string text;
  CHECK_FALSE(reader_of("1").string(text));
  CHECK_FALSE(reader_of("[]").object([](std::string_view) { return true; }));
  CHECK_FALSE(reader_of("{}").array([] { return true; }));
  JsonReader empty = reader_of(" ");
  CHECK(empty.next() == '\0');
  CHECK(empty.at_end());
  // A caller that refuses a member ends the reading.
  JsonReader refused = reader_of(R"({"a":1,"b":2})");
  int members = 0;
  CHECK_FALSE(refused.object([&](std::string_view) {
    ++members;
    return false;
  }));
  CHECK(members == 1);
  CHECK(std::move(refused).fault().at == 5);
}

TEST_CASE("with unique keys a repeated key is refused, and the nearest floating point number counts") {
  CHECK(fault_of(R"({"a":1,"a":2})", JsonManners::unique_keys).kind == JsonFault::Kind::repeated_key);
  CHECK(read("18446744073709551616", JsonManners::unique_keys) == 18446744073709551616.0);
  CHECK(read("1e-999", JsonManners::unique_keys) == 0.0);
  CHECK(fault_of("1e999", JsonManners::unique_keys).kind == JsonFault::Kind::number);
}

TEST_CASE("nesting is bounded, and so is the stack that hostile text takes") {
  CHECK(read(nested(deep)));
  CHECK(fault_of(nested(deep + 1)).kind == JsonFault::Kind::depth);
  CHECK(fault_of(std::string(1000000, '[')).kind == JsonFault::Kind::depth);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  CHECK(fault_of(objects).kind == JsonFault::Kind::depth);

  // Brackets within strings are text, and closed brackets do not count.
  CHECK(read(R"(["\")" + std::string(1000, '[') + R"("])"));
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[],{},";
  CHECK(read(wide + "[]]")->size() == 2001);
}

TEST_CASE("anything but one value is no JSON") {
  for (const std::string& text : {""s,
                                  " "s,
                                  "\0"s,
                                  "{}\0"s,
                                  "{} {}"s,
                                  "{}}"s,
                                  "[1,]"s,
                                  "[,1]"s,
                                  "{\"a\"}"s,
                                  "{\"a\":}"s,
                                  "{\"a\":1,}"s,
                                  "{a:1}"s,
                                  "{'a':1}"s,
                                  "// \n{}"s,
                                  "[\"\n\"]"s,
                                  "[\"\0\"]"s,
                                  "[\"\\x\"]"s,
                                  "[\"\\ud800\"]"s,
                                  "[\"\\udc00\"]"s,
                                  "[\"a]"s,
                                  "tru"s,
                                  "nul"s,
                                  "True"s,
                                  "\xef\xbb\xbf{}"s}) {
    CAPTURE(text);
    CHECK(fault_of(text).kind == JsonFault::Kind::syntax);
    CHECK(fault_of(text).place.empty());
  }
}

TEST_CASE("the objects of opaque keys are checked and kept as their text") {
  const auto read = [](std::string_view text, std::size_t values = 100) {
    static constexpr std::array<std::string_view, 2> opaque{"x", "w"};
    return read_json(text, 4, JsonManners::lenient, values, opaque);
  };
  const auto text_at = [](const json& value) { return std::string(opaque_text(value).value_or("none")); };
  const json value = std::get<json>(
      read(R"({"x" : {"b": 1.0, "a":"} x", "b":[]} , "y":[{"x":{"c": 1E2}}, {"x":"2"}],"z":"1"})"));
  CHECK(text_at(value["x"]) == R"({"b": 1.0, "a":"} x", "b":[]})");
  CHECK(text_of(value) == R"({"x":{"b":1.0,"a":"} x","b":[]},"y":[{"x":{"c":1E2}},{"x":"2"}],"z":"1"})");
  CHECK(text_at(value["y"][0]["x"]) == R"({"c": 1E2})");
  CHECK(value["y"][1]["x"] == "2");
  CHECK(text_at(value["z"]) == "none");
  CHECK(text_at(std::get<json>(read(R"({"w":{"x":1}})"))["w"]) == R"({"x":1})");
  CHECK(std::get<JsonFault>(read(R"({"x":{"b":1,}})")).kind == JsonFault::Kind::syntax);
  CHECK(std::get<JsonFault>(read(R"({"x":"a\q"})")).kind == JsonFault::Kind::syntax);
  CHECK(std::get<JsonFault>(read(R"({"x":"a)")).kind == JsonFault::Kind::syntax);
  CHECK(std::get<JsonFault>(read("{\"x\":\"\xff\"}")).kind == JsonFault::Kind::utf8);
  CHECK(std::get<JsonFault>(read(R"({"x":[[[[]]]]})")).kind == JsonFault::Kind::depth);
  CHECK(std::get<JsonFault>(read(R"({"x":[1,2,3]})", 4)).kind == JsonFault::Kind::values);
  const JsonFault fault = std::get<JsonFault>(read(R"({"x":[0,{"k":1e999}]})"));
  CHECK(fault.kind == JsonFault::Kind::number);
  CHECK(fault.place == std::vector<JsonFault::Step>{"k", std::size_t{1}, "x"});
  CHECK(without_blanks(" { \"a \\\" b\" :\n[ 1 ,\t\"\\\\\" , 2 ] }\r") == "{\"a \\\" b\":[1,\"\\\\\",2]}");
}

}  // namespace
}  // namespace resourced::json_text
