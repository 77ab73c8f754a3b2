#include "core/constraint/constraint.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/constraint/budget.hpp"
#include "core/error.hpp"
#include "core/json/json_path.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/targets.hpp"
#include "core/text/quote.hpp"

namespace resourced::constraint {

using json_text::JsonPath;
using rset::ResourceSet;
using text::IdSet;

namespace {

using Json = nlohmann::json;

IdSet ranks_with(const ResourceSet& inventory, std::string_view property) {
  const auto found = inventory.properties().find(property);
  return found == inventory.properties().end() ? IdSet{} : found->second;
}

// Budget steps of one set operation on the ranks of an inventory.
std::uint64_t set_operation(const ResourceSet& inventory) { return 16 + inventory.ranks().count() / 64; }

/// Budget steps of the look-up of one host, the index over the named hosts included.
constexpr std::uint64_t steps_per_host = 64;

/// Unites sets in pairs, because adding one after the other to the first would cost the size of the first
/// each time.
IdSet unite(std::vector<IdSet> sets) {
  if (sets.empty()) return {};
  for (std::size_t count = sets.size(); count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      sets[i] |= sets[i + 1];
      if (i > 0) sets[i / 2] = std::move(sets[i]);
    }
    if (count % 2 == 1) sets[count / 2] = std::move(sets[count - 1]);
  }
  return std::move(sets[0]);
}

}  // namespace

/// Turns JSON into operations, and counts terms and hosts against their limits.
class Constraint::Reader {
 public:
  explicit Reader(Budget& budget) : budget_(budget) {}

  Constraint read_object(const Json& document, const JsonPath& path, std::size_t depth) {
    if (!document.is_object()) fail(path, EINVAL, "must be an object");
    if (depth > max_depth) fail(path, ERANGE, fmt::format("nested more than {} deep", max_depth));
    count_term();
    Constraint constraint;
    for (const auto& [name, values] : document.items()) {
      const std::optional<Operator> op = operator_named(name);
      if (!op) fail(path, EINVAL, "unknown operator " + text::quoted(name));
      constraint.operations_.push_back(read_operation(*op, values, path / name, depth));
    }
    return constraint;
  }

 private:
  Operation read_operation(Operator op, const Json& values, const JsonPath& path, std::size_t depth) {
    if (!values.is_array()) path.fail("must be an array");
    count_term();
    Operation operation;
    operation.op = op;
    std::vector<IdSet> ranks;
    for (std::size_t i = 0; i < values.size(); ++i) read_value(operation, ranks, values[i], path[i], depth);
    operation.ranks = unite(std::move(ranks));
    return operation;
  }

  void read_value(Operation& operation, std::vector<IdSet>& ranks, const Json& value, const JsonPath& path,
                  std::size_t depth) {
    if (is_logical(operation.op)) {
      operation.operands.push_back(read_object(value, path, depth + 1));
      return;
    }
    if (!value.is_string()) path.fail("must be a string");
    const auto& text = value.get_ref<const std::string&>();
    budget_.spend(1 + text.size());
    if (operation.op == Operator::properties) {
      count_term();
      const std::string defect =
          rset::property_name_defect(std::string_view(text).substr(text.starts_with('^') ? 1 : 0));
      if (!defect.empty()) path.fail(text::quoted(text) + ": " + defect);
    } else {
      try {
        read_targets(operation, ranks, text);
      } catch (const Error& error) {
        throw Error(error.errnum(), fmt::format("{}: {}", path.text(), error.what()));
      }
    }
    operation.values.push_back(text);
  }

  void read_targets(Operation& operation, std::vector<IdSet>& ranks, const std::string& text) {
    if (operation.op == Operator::ranks) {
      ranks.push_back(IdSet::parse(text));
      return;
    }
    const text::Hostlist hosts = text::Hostlist::parse(text);
    if (hosts.size() > max_hosts - host_count_)
      throw Error(ERANGE, fmt::format("a constraint names at most {} hosts", max_hosts));
    host_count_ += hosts.size();
    budget_.spend(hosts.size());
    operation.hosts.append(hosts);
  }

  static bool is_logical(Operator op) {
    return op == Operator::conjunction || op == Operator::disjunction || op == Operator::negation;
  }

  [[noreturn]] static void fail(const JsonPath& path, int errnum, std::string_view reason) {
    const std::string place = path.text();
    throw Error(errnum, fmt::format("{}: {}", place.empty() ? "constraint" : place, reason));
  }

  void count_term() {
    if (++term_count_ > max_terms)
      throw Error(ERANGE,
                  fmt::format("constraint: has more than {} objects, operators and properties", max_terms));
  }

  static std::optional<Operator> operator_named(std::string_view name) {
    for (const auto& [op, operator_name] : operator_names)
      if (operator_name == name) return op;
    return std::nullopt;
  }

  Budget& budget_;
  std::size_t term_count_ = 0;
  std::size_t host_count_ = 0;

 public:
  static constexpr std::array<std::pair<Operator, std::string_view>, 6> operator_names{{
      {Operator::properties, "properties"},
      {Operator::hostlist, "hostlist"},
      {Operator::ranks, "ranks"},
      {Operator::conjunction, "and"},
      {Operator::disjunction, "or"},
      {Operator::negation, "not"},
  }};
};

Constraint Constraint::from_json(const Json& document) { return from_json(document, JsonPath()); }

Constraint Constraint::from_json(const Json& document, const JsonPath& place) {
  Budget unlimited;
  return from_json(document, place, unlimited);
}

Constraint Constraint::from_json(const Json& document, const JsonPath& place, Budget& budget) {
  return Reader(budget).read_object(document, place, 1);
}

Json Constraint::to_json() const {
  Json document = Json::object();
  for (const Operation& operation : operations_) {
    const auto* const named = std::ranges::find(Reader::operator_names, operation.op,
                                                &std::pair<Operator, std::string_view>::first);
    Json values = Json::array();
    for (const std::string& value : operation.values) values.push_back(value);
    for (const Constraint& operand : operation.operands) values.push_back(operand.to_json());
    document[std::string(named->second)] = std::move(values);
  }
  return document;
}

IdSet Constraint::match(const ResourceSet& inventory) const {
  Budget unlimited;
  return match(inventory, unlimited);
}

IdSet Constraint::match(const ResourceSet& inventory, Budget& budget) const {
  budget.spend(set_operation(inventory));
  IdSet matching = inventory.ranks();
  for (const Operation& operation : operations_) matching &= match(operation, inventory, budget);
  return matching;
}

IdSet Constraint::match(const Operation& operation, const ResourceSet& inventory, Budget& budget) {
  const std::size_t names = operation.op == Operator::properties ? operation.values.size() : 0;
  budget.spend(times(set_operation(inventory), 1 + names + operation.operands.size()));
  budget.spend(times(steps_per_host, operation.hosts.size()));
  IdSet matching;
  switch (operation.op) {
    case Operator::properties:
      matching = inventory.ranks();
      for (const std::string_view name : operation.values) {
        if (name.starts_with('^'))
          matching -= ranks_with(inventory, name.substr(1));
        else
          matching &= ranks_with(inventory, name);
      }
      break;
    case Operator::hostlist:
      matching = known_ranks_of_hosts(operation.hosts, inventory);
      break;
    case Operator::ranks:
      matching = operation.ranks & inventory.ranks();
      break;
    case Operator::disjunction:
      if (operation.operands.empty()) matching = inventory.ranks();
      for (const Constraint& operand : operation.operands) matching |= operand.match(inventory, budget);
      break;
    case Operator::conjunction:
    case Operator::negation:
      matching = inventory.ranks();
      for (const Constraint& operand : operation.operands) matching &= operand.match(inventory, budget);
      if (operation.op == Operator::negation) matching = inventory.ranks() - matching;
      break;
  }
  return matching;
}

void Budget::run_out() {
  left_ = 0;
  throw Error(ETIMEDOUT, fmt::format("checking the request takes more than {} steps", steps_));
}

}  // namespace resourced::constraint
