// The members of an R that this project keeps and writes without using them: the opaque `scheduling` object,
// `attributes` of the earlier edition of RFC 20, and keys that no edition knows.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

namespace resourced::rset {

struct CarriedKeys {
  std::optional<nlohmann::json> scheduling;
  std::optional<nlohmann::json> attributes;
  /// Unknown keys of the document, and of its `execution`.
  nlohmann::json::object_t document;
  nlohmann::json::object_t execution;

  friend bool operator==(const CarriedKeys&, const CarriedKeys&) = default;
};

}  // namespace resourced::rset
