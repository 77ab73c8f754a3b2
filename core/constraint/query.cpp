#include "core/constraint/query.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::constraint {

namespace {

using Json = nlohmann::json;

constexpr std::string_view blanks = " \t\n\v\f\r";
constexpr std::string_view ends_of_a_word = " \t\n\v\f\r()&|'\"";

/// A token of a query. The text of a word is a term as it is written, quotes included.
struct Token {
  enum class Kind { end, open, close, conjunction, disjunction, negation, word };

  Kind kind = Kind::end;
  std::string_view text;
  std::size_t offset = 0;
};

[[noreturn]] void fail_at(std::string_view query, std::size_t offset, std::string_view reason) {
  throw Error(EINVAL, fmt::format("column {}: {}",
                                  json_text::count_utf8_characters(query.substr(0, offset)) + 1, reason));
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view query) : query_(query) {}

  Token next() {
    offset_ = std::min(query_.find_first_not_of(blanks, offset_), query_.size());
    if (offset_ == query_.size()) return {Token::Kind::end, "", offset_};
    switch (query_[offset_]) {
      case '(':
        return take(Token::Kind::open, 1);
      case ')':
        return take(Token::Kind::close, 1);
      case '&':
        return take(Token::Kind::conjunction, query_.substr(offset_).starts_with("&&") ? 2 : 1);
      case '|':
        return take(Token::Kind::disjunction, query_.substr(offset_).starts_with("||") ? 2 : 1);
      default:
        return take_word();
    }
  }

 private:
  Token take(Token::Kind kind, std::size_t length) {
    const Token token{kind, query_.substr(offset_, length), offset_};
    offset_ += length;
    return token;
  }

  Token take_word() {
    const std::size_t end = std::min(query_.find_first_of(ends_of_a_word, offset_), query_.size());
    if (end < query_.size() && (query_[end] == '\'' || query_[end] == '"'))
      return take(Token::Kind::word, end_of_quotes(end) - offset_);
    const std::string_view word = query_.substr(offset_, end - offset_);
    Token::Kind kind = Token::Kind::word;
    if (word == "and") kind = Token::Kind::conjunction;
    if (word == "or") kind = Token::Kind::disjunction;
    if (word == "not") kind = Token::Kind::negation;
    return take(kind, word.size());
  }

  std::size_t end_of_quotes(std::size_t opening) const {
    const bool leads_the_operand = opening == offset_ || query_[opening - 1] == ':' ||
                                   (query_[opening - 1] == '-' && opening == offset_ + 1);
    if (!leads_the_operand) fail_at(query_, opening, "a quote must stand at the start of an operand");
    const std::size_t closing = query_.find(query_[opening], opening + 1);
    if (closing == std::string_view::npos)
      fail_at(query_, opening, fmt::format("the quote {} is not closed", query_[opening]));
    const std::size_t end = closing + 1;
    if (end < query_.size() &&
        std::string_view(" \t\n\v\f\r()&|").find(query_[end]) == std::string_view::npos)
      fail_at(query_, end,
              fmt::format("found {} right after a closing quote", text::quoted(query_.substr(end, 1))));
    return end;
  }

  std::string_view query_;
  std::size_t offset_ = 0;
};

/// Whether the operands of terms are checked while the query is read.
enum class Terms { checked, unchecked };

/// A parser by recursive descent, of this grammar:
///   expression: conjunction ('or' conjunction)*
///   conjunction: factor ('and'? factor)*
///   factor: 'not' factor | '(' expression ')' | '-'? term
class Parser {
 public:
  Parser(std::string_view query, const QueryOptions& options, Terms terms)
      : query_(query), options_(options), terms_(terms), tokenizer_(query), token_(tokenizer_.next()) {}

  Json parse() {
    Json expression = parse_expression(0);
    if (token_.kind == Token::Kind::close) fail("found \")\" without its \"(\"");
    return expression;
  }

 private:
  Json parse_expression(std::size_t depth) {
    Json operands = Json::array({parse_conjunction(depth)});
    while (token_.kind == Token::Kind::disjunction) {
      advance();
      operands.push_back(parse_conjunction(depth));
    }
    return join("or", std::move(operands));
  }

  Json parse_conjunction(std::size_t depth) {
    Json operands = Json::array({parse_factor(depth)});
    for (;;) {
      if (token_.kind == Token::Kind::conjunction)
        advance();
      else if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::open &&
               token_.kind != Token::Kind::negation)
        return join("and", std::move(operands));
      operands.push_back(parse_factor(depth));
    }
  }

  Json parse_factor(std::size_t depth) {
    if (depth > max_query_depth) fail(fmt::format("nested more than {} deep", max_query_depth));
    switch (token_.kind) {
      case Token::Kind::negation: {
        advance();
        return negated(parse_factor(depth + 1));
      }
      case Token::Kind::open: {
        advance();
        Json expression = parse_expression(depth + 1);
        if (token_.kind != Token::Kind::close) fail(fmt::format("found {} where \")\" is missing", found()));
        advance();
        return expression;
      }
      case Token::Kind::word: {
        Json term = parse_term(token_);
        advance();
        return term;
      }
      case Token::Kind::end:
      case Token::Kind::close:
      case Token::Kind::conjunction:
      case Token::Kind::disjunction:
        break;
    }
    fail(fmt::format("found {} where a term is expected", found()));
  }

  Json parse_term(const Token& token) const {
    if (!token.text.starts_with('-')) return parse_term(token.text, token.offset);
    const std::size_t offset = token.offset + 1;
    const std::string_view text = token.text.substr(1);
    if (text.empty()) {
      const bool group = query_.substr(offset).starts_with('(');
      fail_at(query_, offset,
              group ? "found \"(\" after \"-\", which negates a single term: write \"not (\""
                    : "\"-\" must stand right before a term");
    }
    if (text.starts_with('-')) fail_at(query_, offset, "found \"-\" after \"-\", a term is negated once");
    if (text == "and" || text == "or" || text == "not")
      fail_at(query_, offset, fmt::format("found {} where a term is expected", text::quoted(text)));
    return negated(parse_term(text, offset));
  }

  /// Reads a term, `operator:operand` or `operand`. A colon within quotes is part of the operand.
  Json parse_term(std::string_view text, std::size_t offset) const {
    std::string_view operand = text;
    std::string_view op = options_.default_operator;
    const std::size_t colon = text.find_first_of(":'\"");
    if (colon != std::string_view::npos && text[colon] == ':') {
      op = text.substr(0, colon);
      operand.remove_prefix(colon + 1);
    }
    const std::size_t operand_offset = offset + text.size() - operand.size();
    if (op.empty()) fail_at(query_, offset, "found \":\" where the name of an operator is expected");
    const auto known = options_.operators.find(op);
    if (known == options_.operators.end())
      fail_at(query_, offset, fmt::format("unknown operator {}", text::quoted(op)));

    const bool literal = operand.starts_with('\'') || operand.starts_with('"');
    if (literal) operand = operand.substr(1, operand.size() - 2);
    if (operand.empty())
      fail_at(query_, operand_offset, fmt::format("the operand of {} is empty", text::quoted(op)));
    Json values = Json::array();
    if (known->second == "properties" && !literal)
      values = split_names(operand, operand_offset);
    else
      values.push_back(operand);
    return checked(object(known->second, std::move(values)), operand_offset);
  }

  Json split_names(std::string_view names, std::size_t offset) const {
    Json values = Json::array();
    for (std::size_t start = 0; start <= names.size();) {
      const std::size_t end = std::min(names.find(',', start), names.size());
      if (end == start) fail_at(query_, offset + start, "a name is missing beside \",\"");
      values.push_back(names.substr(start, end - start));
      start = end + 1;
    }
    return values;
  }

  /// Checks operands of the operators of RFC 31 here, where their column is known.
  Json checked(Json term, std::size_t offset) const {
    const std::string& op = term.begin().key();
    if (terms_ == Terms::unchecked || (op != "properties" && op != "hostlist" && op != "ranks")) return term;
    try {
      static_cast<void>(Constraint::from_json(term));
    } catch (const Error& error) {
      fail_at(query_, offset, error.what());
    }
    return term;
  }

  static Json object(const std::string& op, Json values) {
    Json result = Json::object();
    result[op] = std::move(values);
    return result;
  }

  static Json negated(Json expression) { return object("not", Json::array({std::move(expression)})); }

  static Json join(const char* op, Json operands) {
    if (operands.size() == 1) return std::move(operands[0]);
    return object(op, std::move(operands));
  }

  void advance() { token_ = tokenizer_.next(); }

  std::string found() const {
    return token_.kind == Token::Kind::end ? "the end of the query" : text::quoted(token_.text);
  }

  [[noreturn]] void fail(std::string_view reason) const { fail_at(query_, token_.offset, reason); }

  std::string_view query_;
  const QueryOptions& options_;
  Terms terms_;
  Tokenizer tokenizer_;
  Token token_;
};

Json read_query(std::string_view text, const QueryOptions& options, Terms terms) {
  if (text.size() > max_query_length)
    throw Error(EINVAL, fmt::format("a query of {} bytes is longer than {}", text.size(), max_query_length));
  if (const std::optional<std::size_t> invalid = json_text::find_invalid_utf8(text))
    fail_at(text, *invalid, "not UTF-8");
  return Parser(text, options, terms).parse();
}

}  // namespace

Json query_to_json(std::string_view text, const QueryOptions& options) {
  return read_query(text, options, Terms::checked);
}

Constraint parse_query(std::string_view text, const QueryOptions& options) {
  try {
    return Constraint::from_json(read_query(text, options, Terms::unchecked));
  } catch (const Error&) {
    // Check each term by itself, so that the error names the column of the term.
    static_cast<void>(query_to_json(text, options));
    throw;
  }
}

}  // namespace resourced::constraint
