// Actors as JSON, each an object with one key: `{"userid": N}`, `{"key": NAME}`, `{"address": ADDRESS}`,
// `{"host": NAME}` or `{"signal": NAME}`. The key `by` has such an object in the contexts of events, in the
// drains of resource.status, and in the store.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/module/actor.hpp"

namespace resourced::proto {

void append_actor(std::string& out, const module::Actor& actor);
[[nodiscard]] std::string encode_actor(const module::Actor& actor);
[[nodiscard]] nlohmann::json actor_to_json(const module::Actor& actor);

/// Returns the key of the object of an actor.
[[nodiscard]] std::string_view actor_key(const module::Actor& actor) noexcept;
/// Returns the name of an actor without its key; of a user the number.
[[nodiscard]] std::string actor_name(const module::Actor& actor);

/// Reads an actor. Throws Error EINVAL for any other value, with a text that has no key in front.
[[nodiscard]] module::Actor read_actor(const nlohmann::json& value);

}  // namespace resourced::proto
