// A drain as JSON, in the log: `{"targets": IDSET, "timestamp": T, "reason": STRING?, "by": ACTOR?, "until":
// T?, "ticket": STRING?}`. Events, requests and answers have the same terms of a drain, each with its reason
// in its own place.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"

namespace resourced::proto {

/// Calls `write(key, value)` for each term but the reason. A value is a time (WallTime) or a text.
template <class Write>
void for_each_term(const module::DrainTerms& terms, Write write) {
  if (terms.until) write("until", *terms.until);
  if (terms.ticket) write("ticket", *terms.ticket);
}

/// Reads the terms. `reader.text(key)` and `reader.time(key)` return a member, or nothing if there is none,
/// and throw an Error for one of another type.
template <class Reader>
[[nodiscard]] module::DrainTerms read_terms(const Reader& reader) {
  return {reader.text("reason"), reader.time("until"), reader.text("ticket")};
}

/// Appends the terms but the reason as members of an object.
void append_terms(std::string& out, const module::DrainTerms& terms);

void append_drain_group(std::string& out, const module::DrainGroup& group);
/// Appends the keys besides `targets`, for targets that are named otherwise.
void append_drain(std::string& out, const module::Drain& drain);

/// Throws Error EPROTO for a key that is missing or has another type, EINVAL for a bad value.
[[nodiscard]] module::DrainGroup read_drain_group(const nlohmann::json& object);
[[nodiscard]] module::Drain read_drain(const nlohmann::json& object);

}  // namespace resourced::proto
