#include "core/constraint/named.hpp"

#include <string_view>

#include <nlohmann/json.hpp>

namespace resourced::constraint {

namespace {

void collect(const nlohmann::json& constraint, Named& named) {
  for (const auto& [op, values] : constraint.items()) {
    for (const nlohmann::json& value : values) {
      if (value.is_object()) {
        collect(value, named);
        continue;
      }
      const auto& text = value.get_ref<const std::string&>();
      if (op == "hostlist") {
        named.hosts.append(text::Hostlist::parse(text));
      } else if (op == "ranks") {
        named.ranks |= text::IdSet::parse(text);
      } else {
        named.properties.emplace(text, text.starts_with('^') ? 1 : 0);
      }
    }
  }
}

}  // namespace

Named named_in(const nlohmann::json& constraint) {
  Named named;
  collect(constraint, named);
  return named;
}

}  // namespace resourced::constraint
