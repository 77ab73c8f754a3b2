// Documents as text: values of YAML and JSON, and the errors for hostile text.
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/error.hpp"
#include "repeat.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::document;
using nlohmann::json;
using test::repeat;

namespace {

std::string document_error(const std::string& text) {
  try {
    (void)read_document(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("plain scalars of YAML") {
  struct Row {
    const char* scalar;
    json value;
  };
  const std::vector<Row> rows = {
      {"1", 1},
      {"3600.", 3600.0},
      {"0.5", 0.5},
      {".5", 0.5},
      {"-1.5e3", -1500.0},
      {"+7", 7},
      {"-7", -7},
      {"010", 10},
      {"0o17", 15},
      {"0xff", 255},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"18446744073709551616", 18446744073709551616.0},
      {"-9223372036854775809", -9223372036854775808.0},
      {"1e-999", 0.0},
      {".inf", std::numeric_limits<double>::infinity()},
      {"+.Inf", std::numeric_limits<double>::infinity()},
      {"-.INF", -std::numeric_limits<double>::infinity()},
      {"true", true},
      {"True", true},
      {"FALSE", false},
      {"null", nullptr},
      {"~", nullptr},
      {"", nullptr},
      {"tRUE", "tRUE"},
      {"yes", "yes"},
      {"no", "no"},
      {"on", "on"},
      {"1_000", "1_000"},
      {"1:30", "1:30"},
      {"4,9,16,25", "4,9,16,25"},
      {"3-30", "3-30"},
      {"2+", "2+"},
      {"1e", "1e"},
      {"1.2.3", "1.2.3"},
      {".", "."},
      {"'-'", "-"},
      {"+-1", "+-1"},
      {"0o8", "0o8"},
      {"0xg", "0xg"},
      {"inf", "inf"},
      {"nan", "nan"},
      {"2001-01-01", "2001-01-01"},
      {"hello world", "hello world"},
      {"\"1\"", "1"},
      {"'1'", "1"},
      {"\"\"", ""},
      {"'null'", "null"},
      {"\"a\\nb\\u00e9\"", "a\nb\u00e9"},
      {"!!str 5", "5"},
      {"! 5", "5"},
      {"!!int 5", 5},
      {"!!int '5'", 5},
      {"!!float 5", 5.0},
      {"!!bool true", true},
      {"!!null ~", nullptr},
      {"!!seq [1]", json::array({1})},
      {"!!map {b: 1}", {{"b", 1}}},
      {"!!set {b}", {{"b", nullptr}}},
      {"!!omap [{b: 1}]", json::array({{{"b", 1}}})},
      {"!!binary aGk=", "aGk="},
      {"!!timestamp 2001-12-14", "2001-12-14"},
      {"!mine 1", "1"},
      {"!mine {b: 1}", {{"b", 1}}},
      {"[1, 'a', {b: c}]", json::array({1, "a", {{"b", "c"}}})},
      {"{min: 1}", {{"min", 1}}},
      {"|\n  two\n  lines\n", "two\nlines\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.scalar));
    const json document = read_document("a: " + std::string(row.scalar) + "\n");
    CHECK(document == json{{"a", row.value}});
    CHECK(document["a"].type_name() == row.value.type_name());
  }
}

TEST_CASE("keys are strings, whatever they look like") {
  CHECK(read_document("1: a\ntrue: b\n'x y': c\n") == json{{"1", "a"}, {"true", "b"}, {"x y", "c"}});
}

TEST_CASE("JSON is read as JSON, with or without blanks around it") {
  CHECK(read_document(R"({"a":[1,-2,3.5,true,null,"\u00e9\t"]})") ==
        json{{"a", {1, -2, 3.5, true, nullptr, "\u00e9\t"}}});
  CHECK(read_document(" \n{ \"a\" :\t[ ] , \"b\":{ } }\n ") ==
        json{{"a", json::array()}, {"b", json::object()}});
  CHECK(read_document(R"([9223372036854775808,-9223372036854775808])")[0].is_number_unsigned());
  CHECK(read_document(R"([1.0])")[0].is_number_float());
  CHECK(read_document("[18446744073709551616]") == json::array({18446744073709551616.0}));
  // Flow style, in which YAML allows a tab as JSON does; in block style it would be an error.
  CHECK(read_document("{\"a\":\t1}") == json{{"a", 1}});
  CHECK(read_document("{a: 1, b: no,}") == json{{"a", 1}, {"b", "no"}});
}

TEST_CASE("JSON means what the library says it means") {
  // Damaged JSON: if the library accepts it, the value must be the same.
  const std::string whole =
      R"({"version":1,"a":[1,-2.5e3,0,"x\n\ud83d\ude00é",true,false,null,{}],"b":{"c":[],"d":"\"\\"},"e":-0.0})";
  const std::string bytes = "{}[],:\"\\ 01.e-+tn\xc3\xa9";
  CHECK(read_document(whole) == json::parse(whole));
  std::mt19937 random(7);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (int n = 0; n < 2; ++n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1);
      } else {
        text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    CAPTURE(text);
    const json expected = json::parse(text, nullptr, false);
    if (expected.is_discarded()) {
      // The text may still be YAML; if not, the error is one line.
      REQUIRE(document_error(text).find('\n') == std::string::npos);
      continue;
    }
    const std::string error = document_error(text);
    if (error != "no error") {
      REQUIRE_MESSAGE(error.find("given twice") != std::string::npos, error);
      continue;
    }
    REQUIRE(read_document(text) == expected);
    ++read;
  }
  CHECK(read > 1000);
}

TEST_CASE("what is refused") {
  struct Row {
    std::string text;
    const char* error;
  };
  const std::vector<Row> rows = {
      {"", "the document is empty"},
      {"# nothing\n", "the document is empty"},
      {"a: 1\n---\nb: 2\n", "line 2, column 1: there is more than one document"},
      {"{\"a\":1}\n---\n{}", "there is more than one document"},
      // Duplicate keys
      {R"({"a":1,"a":1})", "a: the key is given twice"},
      {R"({"a":{"b":[0,{"c":1,"c":2}]}})", "a.b[1].c: the key is given twice"},
      {R"({"a":1,"\u0061":1})", "a: the key is given twice"},
      {"a: 1\na: 1\n", "a: the key is given twice"},
      {"a: {b: 1, 'b': 2}\n", "a.b: the key is given twice"},
      {"{\"a b\\n\": 1, \"a b\\n\": 2}", "\"a b\\x0a\": the key is given twice"},
      // Numbers
      {R"({"a":1e999})", "a: \"1e999\" is out of range"},
      {R"({"a":[-1e999]})", "a[0]: \"-1e999\" is out of range"},
      {"a: 0x10000000000000000", "does not fit in 64 bits"},
      {"a: 1e999", "a: \"1e999\" is out of range"},
      // Aliases, anchors, tags, keys
      {"a: *x\n", "line 1"},
      {"a: &x [1, *x]\n", "line 1, column 11: an alias stands inside of what it is an alias of"},
      {"a: &x [1]\n*x : 2\n", "a key must be a string"},
      {"a: !!int x\n", "line 1, column 4: the tag \"tag:yaml.org,2002:int\" does not fit its value"},
      {"a: !!int 1.5\n", "does not fit its value"},
      {"a: !!bool 1\n", "does not fit its value"},
      {"a: !!float x\n", "does not fit its value"},
      {"a: !!seq x\n", "does not fit its value"},
      {"a: !!seq {b: c}\n", "does not fit its value"},
      {"a: !!map [b]\n", "does not fit its value"},
      {"a: !!str [b]\n", "does not fit its value"},
      {"<<: 1\n", "<< needs an object, or a list of objects"},
      {"a: {b: {<<: [{c: 1}, 2]}}\n", "a.b: << needs an object, or a list of objects"},
      {"? [1, 2]\n: 3\n", "a key must be a string"},
      {"? {a: 1}\n: 3\n", "a key must be a string"},
      {"~: 1\n", "a key is missing or null"},
      {": 1\n", "a key is missing or null"},
      // Text that is not YAML at all
      {"a: [1, 2", "line 1"},
      {"a: 'b", "line"},
      {"a: b: c\n", "line 1"},
      {"a:\n\t- 1\n", "line 2"},
      {"\"\\ud800\"", "line 1"},
      {"{\"a\": \"\\q\"}", "line 1"},
      {"a: \xff\n", "the document is not UTF-8 at byte 4"},
      {"{\"a\":\"\xed\xa0\x80\"}", "the document is not UTF-8 at byte 7"},
      {std::string("a: 1\0", 5), "the document has a control character at byte 5"},
      {"a: 1\n\x04"
       "b: 2\n",
       "the document has a control character at byte 6"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string error = document_error(row.text);
    CHECK_MESSAGE(error.find(row.error) != std::string::npos, error);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("an alias stands for the value that its anchor names last") {
  struct Row {
    const char* text;
    json value;
  };
  const std::vector<Row> rows = {
      {"a: &x 1\nb: *x\n", {{"a", 1}, {"b", 1}}},
      {"a: &x '1'\nb: [*x, *x]\n", {{"a", "1"}, {"b", {"1", "1"}}}},
      {"a: &x ~\nb: *x\n", {{"a", nullptr}, {"b", nullptr}}},
      {"a: &x 1\nb: &x 2\nc: *x\n", {{"a", 1}, {"b", 2}, {"c", 2}}},
      {"&x a: 1\nb: *x\n", {{"a", 1}, {"b", "a"}}},
      {"a: &x b\n*x : 1\n", {{"a", "b"}, {"b", 1}}},
      {"- &x {a: [1]}\n- *x\n", {{{"a", {1}}}, {{"a", {1}}}}},
      {"a: &x {b: 1}\nc: {<<: *x}\n", {{"a", {{"b", 1}}}, {"c", {{"b", 1}}}}},
      {"a: {<<: [{b: 1, c: 1}, {c: 2, d: 2}], d: 3}\n", {{"a", {{"b", 1}, {"c", 1}, {"d", 3}}}}},
      {"a: {'<<': 1}\n", {{"a", {{"<<", 1}}}}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.text));
    CHECK(read_document(row.text) == row.value);
  }
}

TEST_CASE("an alias bomb is refused before it grows") {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    const std::string previous(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [" + repeat("*" + previous + ",", 8) + "*" + previous + "]\n";
  }
  CHECK(document_error(bomb).find("anchors and aliases stand for more than 1048576 bytes") !=
        std::string::npos);
  CHECK(document_error("a: &a " + std::string(1000, 'x') + "\nb: [" + repeat("*a,", 1100) + "]\n")
            .find("anchors and aliases stand for more than 1048576 bytes") != std::string::npos);
}

TEST_CASE("size and depth are bounded") {
  const std::string padding(max_document_bytes, ' ');
  CHECK(read_document("{}" + padding.substr(2)) == json::object());
  CHECK(document_error("{}" + padding) == "the document has 1048578 bytes, more than 1048576");

  const auto nested = [](std::size_t depth) { return repeat("[", depth) + repeat("]", depth); };
  CHECK(read_document(nested(max_document_depth)).is_array());
  CHECK(read_document("a: " + nested(max_document_depth - 1)).is_object());
  for (const std::string& text : {nested(max_document_depth + 1), "a: " + nested(max_document_depth),
                                  repeat("[", 100000), repeat("{", 100000), repeat("{\"a\":", 100000),
                                  "a: " + repeat("[", 100000), "a: " + repeat("{a: ", 100000),
                                  repeat("- ", 100000), repeat("? ", 100000), repeat("a: ", 10) + "b"}) {
    CAPTURE(text.substr(0, 20));
    CHECK(document_error(text) != "no error");
  }
  const std::string deep_alias =
      "- &a " + nested(200) + "\n- " + repeat("[", 60) + "*a" + repeat("]", 60) + "\n";
  CHECK(document_error(deep_alias) == "line 2, column 63: the document is nested more than 256 levels deep");
  std::string deep;
  for (std::size_t i = 0; i < 1000; ++i) deep += std::string(i, ' ') + "a:\n";
  CHECK(document_error(deep) == "the document is nested more than 256 levels deep");
}

TEST_CASE("long hostile text is read or refused in time in proportion to its length") {
  const auto fill = [](const std::string& text) {
    return repeat(text, max_document_bytes / 4 / text.size());
  };
  for (const std::string& text :
       {fill("- "),        fill("-\n"),          fill("a "),         fill("'"),        fill("\""),
        fill("!"),         fill("&a "),          fill("*a "),        fill("|\n"),      fill("%a\n"),
        fill("---\n"),     fill("a: 1\n"),       fill("[]"),         fill("[],"),      fill("? a\n"),
        fill("#"),         fill("\\"),           fill(": "),         fill("}"),        "[" + fill("a,"),
        "[" + fill("{},"), "{" + fill("a: b, "), "\"" + fill("\\n"), "a: " + fill("x")}) {
    CAPTURE(text.substr(0, 20));
    CHECK(document_error(text).find('\n') == std::string::npos);
  }
}

TEST_CASE("damaged YAML is read or refused") {
  std::vector<std::string> texts;
  for (const std::string& name : test::list_vectors("spec_14", ".yaml"))
    texts.push_back(test::read_vector(name));
  const std::string bytes = " \n\t-:{}[]&*!|>'\"%#,?@`~.0a\xc3\xa9";
  std::mt19937 random(11);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = texts[random() % texts.size()];
    for (int n = 0; n < 3; ++n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1 + random() % 4);
      } else {
        text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    CAPTURE(text);
    const std::string error = document_error(text);
    REQUIRE(error.find('\n') == std::string::npos);
    if (error == "no error") {
      ++read;
      REQUIRE_NOTHROW(read_document(text).dump());
    }
  }
  CHECK(read > 100);
}

TEST_CASE("what is written as YAML is read back") {
  for (const std::string directory : {"spec_14", "spec_25"}) {
    for (const std::string& name : test::list_vectors(directory, ".yaml")) {
      CAPTURE(name);
      const json document = read_document(test::read_vector(name));
      CHECK(read_document(write_yaml(document)) == document);
    }
  }
  const json awkward = {{"a", {"",  "1",   "true", "no",  "1e5",  "~", "a: b", "# c", "- d", "\n", "é",
                               "+", "4,9", "1:30", "0o7", "\x7f", "y", ".5",   "x.y", "'",   "\"", "\\"}},
                        {"b c", json::object()},
                        {"null", json::array()},
                        {"d", {nullptr, true, -1, 2.5, std::numeric_limits<std::uint64_t>::max()}}};
  CHECK(read_document(write_yaml(awkward)) == awkward);
  CHECK(write_yaml(read_document("[.inf, -.inf, .nan]")) == "- .inf\n- -.inf\n- .nan\n");
  CHECK(write_yaml(nlohmann::ordered_json::parse(
            R"([{"type":"slot","count":"4,9","label":"default","with":[{"type":"core","count":2}]}])")) ==
        "- type: slot\n  count: \"4,9\"\n  label: default\n  with:\n    - type: core\n      count: 2\n");
}
