// The responses of resource.acquire (RFC 28) as values: the first picture and the changes to it. Checked
// against what is known, so that a picture is never left half changed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::client {

/// The view of a scheduler: its inventory and the available targets in it.
struct Picture {
  ResourceSet resources;
  IdSet up;
};

/// A later response: what changes. Absent keys are empty.
struct AcquireUpdate {
  using Properties = std::map<std::string, IdSet>;
  IdSet up;
  /// As sent: the targets that left for good are here too.
  IdSet down;
  IdSet shrink;
  Properties property_add;
  Properties property_remove;
  std::optional<double> expiration;
};

/// The first response. Throws Error EPROTO naming the key that is missing or bad.
[[nodiscard]] Picture read_picture(const nlohmann::json& payload);

/// A later response. Throws Error EPROTO naming the key that is bad.
[[nodiscard]] AcquireUpdate read_update(const nlohmann::json& payload);

/// Makes the changes. Throws Error EPROTO, with nothing changed, if the update names targets that are not
/// there.
void apply_update(Picture& picture, const AcquireUpdate& update);

}  // namespace resourced::client
