// The text form of a constraint (RFC 35), as people write it on a command line and in configuration:
// `gpu&-slow`, `a|b c`, `host:node[1-4] or ranks:0-3`. It is read into the JSON object of RFC 31, which
// constraint.hpp evaluates.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/constraint/constraint.hpp"

#pragma GCC visibility push(default)
namespace resourced::constraint {

struct QueryOptions {
  /// Operator of a term that is written without one.
  std::string default_operator = "properties";
  /// Permitted operators, with the name that each has in the object.
  std::map<std::string, std::string, std::less<>> operators = {
      {"properties", "properties"}, {"hostlist", "hostlist"}, {"hosts", "hostlist"},
      {"host", "hostlist"},         {"ranks", "ranks"},       {"rank", "ranks"},
  };
};

/// Maximum length of a query in bytes, and maximum nesting of parentheses and `not`.
constexpr std::size_t max_query_length = 65536;
constexpr std::size_t max_query_depth = 24;

/// Reads a query into an RFC 31 object. The operand of `properties` may be several names with commas between
/// them, all of which are required. Operands are kept as they are written; those of `properties`, `hostlist`
/// and `ranks` must be valid. Throws Error EINVAL `column N: ...` (characters, counted from 1) that shows
/// what was found there.
[[nodiscard, gnu::visibility("hidden")]] nlohmann::json query_to_json(std::string_view text,
                                                                      const QueryOptions& options = {});

/// Reads a query into a constraint. Throws Error EINVAL that names the column (characters, counted from 1)
/// or the operator, and ERANGE for a constraint past its limits.
[[nodiscard]] Constraint parse_query(std::string_view text, const QueryOptions& options = {});

}  // namespace resourced::constraint
#pragma GCC visibility pop
