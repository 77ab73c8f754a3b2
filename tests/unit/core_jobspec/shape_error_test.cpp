// Invalid shapes (RFC 46): each error names the column and the reason.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/resource_list.hpp"
#include "core/jobspec/shape.hpp"
#include "repeat.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using test::repeat;

namespace {

struct Failure {
  std::size_t column = 0;
  std::string text;
};

Failure failure_of(const std::string& shape) {
  try {
    (void)parse_shape(shape);
  } catch (const ShapeError& error) {
    CHECK(error.errnum() == EINVAL);
    return {error.column(), error.what()};
  }
  return {};
}

}  // namespace

TEST_CASE("errors name the column and the reason") {
  struct Row {
    std::string shape;
    std::size_t column;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {"", 1, "the shape is empty"},
      // Lists
      {"[]", 2, "found \"]\" where it needs a resource type"},
      {"[node", 6, "the shape ends where it needs ; or ]"},
      {"[node;", 7, "the shape ends where it needs a resource type"},
      {"[node;]", 7, "found \"]\" where it needs a resource type"},
      {"[[node]]", 2, "found \"[\" where it needs a resource type"},
      {"node;core", 5, "more than one vertex at a level needs brackets around them: [a;b]"},
      {"node/core;gpu", 10, "more than one vertex at a level needs brackets around them: [a;b]"},
      {"node]", 5, "] without a [ before it"},
      {"[node]/core", 7, "found \"/\" where it needs the end"},
      {"[node,core]", 6, "found \",\" where it needs ; or ]"},
      {"node/", 6, "the shape ends where it needs a resource type"},
      {"/node", 1, "found \"/\" where it needs a resource type"},
      {"node//core", 6, "found \"/\" where it needs a resource type"},
      {"node\"a\"", 5, "found \"\\\"\" where it needs the end"},
      // Counts
      {"node=", 6, "the shape ends where it needs a count"},
      {"node=/core", 6, "found \"/\" where it needs a count"},
      {"node=x", 6, "found \"x\" where it needs a count"},
      {"node=0", 6, "is not a count"},
      {"node=01", 6, "leading zero"},
      {"node=-1", 6, "is not a count"},
      {"node=2.5", 7, "found \".5\" where it needs the end"},
      {"node=2x", 7, "found \"x\" where it needs the end"},
      {"node=9-3", 6, "is not a count"},
      {"node=0+", 6, "is not a count"},
      {"node=1-05", 6, "leading zero"},
      {"node=1-5:0", 6, "is not a count"},
      {"node=1-5:", 6, "is not a count"},
      {"node=1-5:1:*", 6, "is not a count"},
      {"node=1-5:2:^", 6, "is not a count"},
      {"node=1-5:2:/", 6, "is not a count"},
      {"node=1,", 6, "1,"},
      {"node=0,1", 6, "0"},
      {"node=2,1", 6, "2,1"},
      {"node=2,2", 6, "2,2"},
      {"node=1,02", 6, "02"},
      {"node=[1", 8, "the shape ends where it needs the ] of the count"},
      {"node=[]", 6, "is not a count"},
      {"node=1]", 7, "] without a [ before it"},
      {"node=18446744073709551616", 6, "does not fit in 64 bits"},
      {"node=2=3", 7, "found \"=\" where it needs the end"},
      {"node{x}=2", 8, "found \"=\" where it needs the end"},
      // Slots
      {"slot", 5, "the shape ends where it needs / and the resources of the slot"},
      {"slot=4", 7, "the shape ends where it needs / and the resources of the slot"},
      {"slot{a}", 8, "the shape ends where it needs / and the resources of the slot"},
      {"[slot;core]", 6, "found \";\" where it needs / and the resources of the slot"},
      {"slot{}/core", 6, "the braces of a slot start with its label: leave empty ones out"},
      {"slot{+x}/core", 6, "the braces of a slot start with its label: quote one with + or -"},
      {"slot{-x}/core", 6, "the braces of a slot start with its label: quote one with + or -"},
      {"slot{label:a}/core", 6, "the braces of a slot start with its label alone, without a key"},
      {"slot{unit:GB}/core", 6, "the braces of a slot start with its label alone, without a key"},
      {"slot{a,label:b}/core", 8, "label is given twice"},
      {"slot{a", 7, "the shape ends where it needs , or }"},
      {"[slot/core;slot/core]", 2, "with more than one slot each needs a label: slot{name}"},
      {"[slot{a}/core;slot/core]", 15, "with more than one slot each needs a label: slot{name}"},
      {"slot{a}/slot/core", 9, "with more than one slot each needs a label: slot{name}"},
      {"[slot{a}/core;slot{b}/core;slot{a}/core]", 28,
       "\"a\" is the label of another slot: labels must differ"},
      {"[slot{default}/core;slot/core]", 21, "with more than one slot each needs a label: slot{name}"},
      // Braces
      {"node{", 6, "the shape ends where it needs a key"},
      {"node{,}", 6, "found \",\" where it needs a key"},
      {"node{x,}", 8, "found \"}\" where it needs a key"},
      {"node{x;y}", 7, "found \";\" where it needs , or }"},
      {"node{x", 7, "the shape ends where it needs , or }"},
      {"node{+}", 7, "found \"}\" where it needs a key"},
      {"node{:1}", 6, "found \":\" where it needs a key"},
      {"node{a:}", 8, "found \"}\" where it needs a value"},
      {"node{a:b:c}", 9, "found \":\" where it needs , or }"},
      {"node{+a:1}", 6, "a key with + has no value"},
      {"node{-a:true}", 6, "a key with - has no value"},
      {"node{type:core}", 6, "type cannot be set in braces"},
      {"node{count:2}", 6, "count cannot be set in braces"},
      {"node{x,with:[]}", 8, "with cannot be set in braces"},
      {"node{-with}", 6, "with cannot be set in braces"},
      {"node{\"type\":1}", 6, "type cannot be set in braces"},
      {"node{x,x}", 8, "exclusive is given twice"},
      {"node{x,-exclusive}", 8, "exclusive is given twice"},
      {"node{x:1}", 6, "exclusive must be true or false"},
      {"node{exclusive:yes}", 6, "exclusive must be true or false"},
      {"node{unit:5}", 6, "unit must be a string: quote it"},
      {"node{unit}", 6, "unit must be a string: quote it"},
      {"node{id:true}", 6, "id must be a string: quote it"},
      {"node{label:null}", 6, "label must be a string: quote it"},
      {"node{unit:a,unit:a}", 13, "unit is given twice"},
      {"node{a:1,\"a\":2}", 10, "\"a\" is given twice"},
      {"node{a:{b,c,b}}", 13, "\"b\" is given twice"},
      {"node{a:1e999}", 8, "\"1e999\" is out of range: quote it"},
      {"node{a:-1e999}", 8, "\"-1e999\" is out of range: quote it"},
      {"node{a:[1,]}", 11, "found \"]\" where it needs a value"},
      {"node{a:[1;2]}", 10, "found \";\" where it needs , or ]"},
      {"node{a:{b:1]}", 12, "found \"]\" where it needs , or }"},
      {"node{}{}", 7, "found \"{\" where it needs the end"},
      {"node}", 5, "found \"}\" where it needs the end"},
      // Quotes
      {"'node", 6, "the string has no end"},
      {"node{a:\"b", 10, "the string has no end"},
      {"node{a:\"b\\\"}", 13, "the string has no end"},
      {"node{a:'b\"}", 12, "the string has no end"},
      {R"(node{a:"\q"})", 10, "there is no such escape"},
      {R"(node{a:"\'"})", 10, "there is no such escape"},
      {R"(node{a:"\u12"})", 11, "\\u needs four hexadecimal digits"},
      {R"(node{a:"\udc00"})", 11, "this \\u escape is half of a pair"},
      {R"(node{a:"\ud800x"})", 15, "this \\u escape is half of a pair"},
      {"node{a:\"b\nc\"}", 10, "a control character in a string must be written as an escape"},
      // White space and bytes
      {" node", 1, "white space and control characters need quotes around them"},
      {"node ", 5, "white space and control characters need quotes around them"},
      {"node/ core", 6, "white space and control characters need quotes around them"},
      {"[a; b]", 4, "white space and control characters need quotes around them"},
      {"node = 2", 5, "white space and control characters need quotes around them"},
      {"node{a: 1}", 8, "white space and control characters need quotes around them"},
      {"node{a:1 }", 9, "white space and control characters need quotes around them"},
      {"node{a:[1], b}", 12, "white space and control characters need quotes around them"},
      {"node{a:[1]} ", 12, "white space and control characters need quotes around them"},
      {"node{a:[1 2]}", 11, "found \"2\" where it needs , or ]"},
      {"node{a:{b c}}", 11, "found \"c\" where it needs , or }"},
      {"node{a:[1\v]}", 10, "white space and control characters need quotes around them"},
      {"node{a:[ ", 10, "the shape ends where it needs a value"},
      {"node{a:b c}", 9, "white space and control characters need quotes around them"},
      {"node\t", 5, "white space and control characters need quotes around them"},
      {std::string("node\0core", 9), 5, "white space and control characters need quotes around them"},
      {"node{a:\xff}", 8, "the shape is not UTF-8"},
      {"node{a:\xc0\x80}", 8, "the shape is not UTF-8"},
      {"node{a:\xed\xa0\x80}", 8, "the shape is not UTF-8"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.shape);
    const Failure failure = failure_of(row.shape);
    CHECK(failure.column == row.column);
    CHECK(failure.text.starts_with("column " + std::to_string(row.column) + ": "));
    CHECK_MESSAGE(failure.text.find(row.reason) != std::string::npos, failure.text);
    CHECK(failure.text.find('\n') == std::string::npos);
  }
}

TEST_CASE("depth and length are bounded") {
  const auto chain = [](std::size_t levels) { return repeat("a/", levels - 1) + "a"; };
  CHECK(parse_shape(chain(max_graph_depth)).size() == 1);
  CHECK(failure_of(chain(max_graph_depth + 1)).column == 2 * max_graph_depth + 1);
  CHECK(failure_of(repeat("a/[", 40000)).text.find("levels") != std::string::npos);
  CHECK(failure_of("a{b:" + repeat("[", 100000)).text.find("levels deep") != std::string::npos);
  CHECK(failure_of("a{b:" + repeat("{c:", 40000)).text.find("levels deep") != std::string::npos);

  const std::size_t depth = max_shape_value_depth;
  CHECK(parse_shape("a{b:" + repeat("[", depth) + repeat("]", depth) + "}").size() == 1);

  CHECK(parse_shape(std::string(max_shape_bytes, 'a')).size() == 1);
  CHECK(failure_of(std::string(max_shape_bytes + 1, 'a')).text.find("longer than") != std::string::npos);
}

TEST_CASE("a shape of many keys, slots or vertices is read") {
  constexpr std::size_t entries = 15000;
  std::string keys;
  std::string slots;
  for (std::size_t i = 0; i < entries; ++i) keys += (i == 0 ? "k" : ",k") + std::to_string(i);
  for (std::size_t i = 0; i < entries / 2; ++i)
    slots += (i == 0 ? "slot{" : ";slot{") + std::to_string(i) + "}/a";
  CHECK(resources_to_json(parse_shape("a{" + keys + "}")).size() == 1);
  CHECK(print_shape(parse_shape("a{o:{" + keys + "}}")).size() > keys.size());
  CHECK(parse_shape("[" + slots + "]").size() == entries / 2);
}

TEST_CASE("a caret shows the place") {
  CHECK(point_at_column("node;core", 5) ==
        "node;core\n"
        "    ^");
  CHECK(point_at_column("node=", 6) ==
        "node=\n"
        "     ^");
  CHECK(point_at_column("", 1) == "\n^");
  // The column counts bytes, the caret characters.
  CHECK(point_at_column("größe;x", 8) ==
        "größe;x\n"
        "     ^");
  CHECK(point_at_column("a\tb\x1b[c", 4) ==
        "a?b?[c\n"
        "   ^");
  // A C1 control sequence introducer, a right-to-left override, a line separator, and a byte that is not
  // UTF-8.
  CHECK(point_at_column("a\u009b31m\u202eb\u2028;\xff", 14) ==
        "a?31m?b?;?\n"
        "        ^");
  const std::string shown = point_at_column(std::string(500, 'a') + ";" + std::string(500, 'b'), 501);
  CHECK(shown ==
        "..." + std::string(60, 'a') + ";" + std::string(39, 'b') + "...\n" + std::string(63, ' ') + "^");
}
