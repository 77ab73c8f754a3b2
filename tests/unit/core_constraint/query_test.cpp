// Queries of RFC 35: the examples of the RFC, the operators of resource constraints, and every form that is
// refused.
#include "core/constraint/query.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::constraint {
namespace {

using Json = nlohmann::json;

struct QueryCase {
  std::string query;
  std::string constraint;
};

TEST_CASE("the examples of RFC 35, where the default operator is name") {
  const QueryOptions options{"name", {{"name", "name"}, {"state", "state"}}};
  const std::vector<QueryCase> cases{
      {"foo", R"({"name":["foo"]})"},
      {"foo bar", R"({"and":[{"name":["foo"]},{"name":["bar"]}]})"},
      {"foo bar state:started", R"({"and":[{"name":["foo"]},{"name":["bar"]},{"state":["started"]}]})"},
      {"a|b|c", R"({"or":[{"name":["a"]},{"name":["b"]},{"name":["c"]}]})"},
      {"a|b&c", R"({"or":[{"name":["a"]},{"and":[{"name":["b"]},{"name":["c"]}]}]})"},
      {"(a|b)&c", R"({"and":[{"or":[{"name":["a"]},{"name":["b"]}]},{"name":["c"]}]})"},
      {"(a|-b)&c", R"({"and":[{"or":[{"name":["a"]},{"not":[{"name":["b"]}]}]},{"name":["c"]}]})"},
      {"state:'this is args'", R"({"state":["this is args"]})"},
  };
  for (const QueryCase& query : cases) {
    CAPTURE(query.query);
    CHECK(query_to_json(query.query, options) == Json::parse(query.constraint));
  }
}

TEST_CASE("queries for resources") {
  const std::vector<QueryCase> cases{
      {"a", R"({"properties":["a"]})"},
      {"  a  ", R"({"properties":["a"]})"},
      {"properties:a", R"({"properties":["a"]})"},
      {"^a", R"({"properties":["^a"]})"},
      {"a,^b", R"({"properties":["a","^b"]})"},
      {"'a,b'", R"({"properties":["a,b"]})"},
      {"amd@2", R"({"properties":["amd@2"]})"},
      {"+local", R"({"properties":["+local"]})"},
      {"a-b", R"({"properties":["a-b"]})"},
      {"host:node[1-4,7]", R"({"hostlist":["node[1-4,7]"]})"},
      {"hosts:node1", R"({"hostlist":["node1"]})"},
      {"hostlist:node1", R"({"hostlist":["node1"]})"},
      {"rank:0-3", R"({"ranks":["0-3"]})"},
      {"ranks:0-3,5", R"({"ranks":["0-3,5"]})"},
      {"properties:a:b", R"({"properties":["a:b"]})"},
      {"'a:b'", R"({"properties":["a:b"]})"},
      {"\"a b\"", R"({"properties":["a b"]})"},
      {"a b", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a\t\nb", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a&b", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a && b", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a and b", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a|b", R"({"or":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a || b", R"({"or":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a or b", R"({"or":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"(a)(b)", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"a(b)", R"({"and":[{"properties":["a"]},{"properties":["b"]}]})"},
      {"((a))", R"({"properties":["a"]})"},
      {"not a", R"({"not":[{"properties":["a"]}]})"},
      {"not(a)", R"({"not":[{"properties":["a"]}]})"},
      {"not not a", R"({"not":[{"not":[{"properties":["a"]}]}]})"},
      {"not -a", R"({"not":[{"not":[{"properties":["a"]}]}]})"},
      {"-a", R"({"not":[{"properties":["a"]}]})"},
      {"-'a b'", R"({"not":[{"properties":["a b"]}]})"},
      {"-host:n1", R"({"not":[{"hostlist":["n1"]}]})"},
      {"-a,b", R"({"not":[{"properties":["a","b"]}]})"},
      // Words that only start like an operator, and operators in quotes, are terms.
      {"android", R"({"properties":["android"]})"},
      {"'and'", R"({"properties":["and"]})"},
      {"properties:or", R"({"properties":["or"]})"},
      // not binds tighter than and, and tighter than or.
      {"not a b", R"({"and":[{"not":[{"properties":["a"]}]},{"properties":["b"]}]})"},
      {"a b|c", R"({"or":[{"and":[{"properties":["a"]},{"properties":["b"]}]},{"properties":["c"]}]})"},
      {"a|b c", R"({"or":[{"properties":["a"]},{"and":[{"properties":["b"]},{"properties":["c"]}]}]})"},
      {"a|b&c", R"({"or":[{"properties":["a"]},{"and":[{"properties":["b"]},{"properties":["c"]}]}]})"},
      {"not(a|b)", R"({"not":[{"or":[{"properties":["a"]},{"properties":["b"]}]}]})"},
      {"a&(b|c)", R"({"and":[{"properties":["a"]},{"or":[{"properties":["b"]},{"properties":["c"]}]}]})"},
  };
  for (const QueryCase& query : cases) {
    CAPTURE(query.query);
    const Json expected = Json::parse(query.constraint);
    CHECK(query_to_json(query.query) == expected);
    CHECK(parse_query(query.query).to_json() == expected);
  }
}

struct RefusedQuery {
  std::string query;
  std::string text;
};

TEST_CASE("what is refused, with the column and what was found there") {
  const std::vector<RefusedQuery> cases{
      {"", "column 1: found the end of the query where a term is expected"},
      {"   ", "column 4: found the end of the query where a term is expected"},
      {"()", "column 2: found \")\" where a term is expected"},
      {"(a", "column 3: found the end of the query where \")\" is missing"},
      {"((a)", "column 5: found the end of the query where \")\" is missing"},
      {"a)", "column 2: found \")\" without its \"(\""},
      {")", "column 1: found \")\" where a term is expected"},
      {"a &", "column 4: found the end of the query where a term is expected"},
      {"a or", "column 5: found the end of the query where a term is expected"},
      {"& a", "column 1: found \"&\" where a term is expected"},
      {"|a", "column 1: found \"|\" where a term is expected"},
      {"a | | b", "column 5: found \"|\" where a term is expected"},
      {"a ||| b", "column 5: found \"|\" where a term is expected"},
      {"a &&& b", "column 5: found \"&\" where a term is expected"},
      {"a and or b", "column 7: found \"or\" where a term is expected"},
      {"a (or b)", "column 4: found \"or\" where a term is expected"},
      {"not", "column 4: found the end of the query where a term is expected"},
      {"not | a", "column 5: found \"|\" where a term is expected"},
      {"-(a|b)", "column 2: found \"(\" after \"-\", which negates a single term: write \"not (\""},
      {"a -", "column 4: \"-\" must stand right before a term"},
      {"- a", "column 2: \"-\" must stand right before a term"},
      {"--a", "column 2: found \"-\" after \"-\", a term is negated once"},
      {"-not a", "column 2: found \"not\" where a term is expected"},
      {"foo:a", "column 1: unknown operator \"foo\""},
      {"a -foo:a", "column 4: unknown operator \"foo\""},
      {"a and:b", "column 3: unknown operator \"and\""},
      {":a", "column 1: found \":\" where the name of an operator is expected"},
      {"host:", "column 6: the operand of \"host\" is empty"},
      {"-host: a", "column 7: the operand of \"host\" is empty"},
      {"''", "column 1: the operand of \"properties\" is empty"},
      {"a,,b", "column 3: a name is missing beside \",\""},
      {",a", "column 1: a name is missing beside \",\""},
      {"a,", "column 3: a name is missing beside \",\""},
      {"a 'b", "column 3: the quote ' is not closed"},
      {"host:\"n1'", "column 6: the quote \" is not closed"},
      {"a'b'", "column 2: a quote must stand at the start of an operand"},
      {"'a'b", "column 4: found \"b\" right after a closing quote"},
      {"'a''b'", "column 4: found \"'\" right after a closing quote"},
      {"'host':n1", "column 7: found \":\" right after a closing quote"},
      {"a!b", "column 1: properties[0]: \"a!b\": a property name cannot have !"},
      {"x properties:a^b", "column 14: properties[0]: \"a^b\": a property name cannot have ^"},
      {"\xC3\xA4 )", "column 3: found \")\" without its \"(\""},
      {"ab \xFF", "column 4: not UTF-8"},
  };
  for (const RefusedQuery& error : cases) {
    CAPTURE(error.query);
    CHECK_THROWS_WITH_AS(static_cast<void>(query_to_json(error.query)), error.text.c_str(), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_query(error.query)), error.text.c_str(), Error);
  }
}

std::string error_of(const std::string& query) {
  try {
    static_cast<void>(query_to_json(query));
  } catch (const Error& error) {
    CHECK(error.errnum() == EINVAL);
    return error.what();
  }
  return "";
}

TEST_CASE("an operand that its operator refuses is named with its column") {
  CHECK(error_of("a host:n[3-1]").starts_with("column 8: hostlist[0]: \"n[3-1]\""));
  CHECK(error_of("rank:x").starts_with("column 6: ranks[0]: \"x\""));
}

TEST_CASE("a constraint may be read with operators of the caller") {
  const QueryOptions options{"rank", {{"rank", "ranks"}}};
  CHECK(parse_query("1-2", options).to_json() == Json::parse(R"({"ranks":["1-2"]})"));
  CHECK_THROWS_AS((void)parse_query("host:n1", options), Error);
}

TEST_CASE("length and nesting are limited") {
  std::string nested = "a";
  for (std::size_t i = 0; i < max_query_depth; ++i) nested = "(b|c&" + nested + ")";
  CHECK(error_of(nested) == "");
  CHECK(error_of("not " + nested).starts_with("column "));
  CHECK(error_of(std::string(60000, '(')).ends_with("nested more than 24 deep"));

  // A query of the maximum depth gives a valid constraint.
  CHECK_NOTHROW(static_cast<void>(parse_query(nested)));

  CHECK(error_of(std::string(max_query_length, ' ') + "a").find("longer than 65536") != std::string::npos);
}

}  // namespace
}  // namespace resourced::constraint
