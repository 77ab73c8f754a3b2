// A job constraint (RFC 31): a condition on properties, hosts and ranks that narrows an inventory to the
// ranks that satisfy it. The text form that people write is in query.hpp; feasibility.hpp checks the request
// against the ranks that match. A value: threads may read one at the same time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/constraint/budget.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::json_text {
class JsonPath;
}

#pragma GCC visibility push(default)
namespace resourced::constraint {

class Constraint {
 public:
  /// Maximum nesting of objects.
  static constexpr std::size_t max_depth = 64;
  /// Maximum number of objects, operators and property names of one constraint.
  static constexpr std::size_t max_terms = 4096;
  /// Maximum number of hosts that the hostlists of one constraint may name.
  static constexpr std::size_t max_hosts = std::size_t{1} << 20;

  /// The default constraint matches everything, like `{}`.
  Constraint() = default;

  /// Reads an RFC 31 object. Throws Error EINVAL that names operator and place
  /// (`and[1].properties[0]: must be a string`), or ERANGE for one that is past a limit.
  [[nodiscard, gnu::visibility("hidden")]] static Constraint from_json(const nlohmann::json& document);
  /// Reads an object that has its place in a larger document: errors start with that place.
  [[nodiscard, gnu::visibility("hidden")]] static Constraint from_json(const nlohmann::json& document,
                                                                       const json_text::JsonPath& place);
  /// The same within a budget.
  [[nodiscard, gnu::visibility("hidden")]] static Constraint from_json(const nlohmann::json& document,
                                                                       const json_text::JsonPath& place,
                                                                       Budget& budget);

  /// Returns the object as it was read.
  [[nodiscard, gnu::visibility("hidden")]] nlohmann::json to_json() const;

  /// Returns the ranks of the inventory that satisfy the constraint. The cost is one set operation for each
  /// term and one look-up for each named host. Ranks, hosts and properties that the inventory does not have
  /// match nothing.
  [[nodiscard]] text::IdSet match(const rset::ResourceSet& inventory) const;
  /// The same within a budget.
  [[nodiscard]] text::IdSet match(const rset::ResourceSet& inventory, Budget& budget) const;

 private:
  enum class Operator { properties, hostlist, ranks, conjunction, disjunction, negation };

  /// One key of an object with its values. Only the members that the operator needs are filled.
  struct Operation {
    Operator op = Operator::conjunction;
    std::vector<std::string> values;
    text::Hostlist hosts;
    text::IdSet ranks;
    std::vector<Constraint> operands;
  };

  class [[gnu::visibility("hidden")]] Reader;

  [[nodiscard, gnu::visibility("hidden")]] static text::IdSet match(const Operation& operation,
                                                                    const rset::ResourceSet& inventory,
                                                                    Budget& budget);

  /// The constraint is satisfied if all of these are.
  std::vector<Operation> operations_;
};

}  // namespace resourced::constraint
#pragma GCC visibility pop
