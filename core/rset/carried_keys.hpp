// The members of an R that this project keeps and writes without using them: the opaque `scheduling` object,
// `attributes` of the earlier edition of RFC 20, and keys that no edition knows.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace resourced::rset {

struct CarriedKeys {
  /// The text of the object, without white space between its tokens.
  std::optional<std::string> scheduling;
  std::optional<nlohmann::json> attributes;
  /// Unknown keys of the document, and of its `execution`.
  nlohmann::json::object_t document;
  nlohmann::json::object_t execution;

  friend bool operator==(const CarriedKeys& a, const CarriedKeys& b);
};

}  // namespace resourced::rset
