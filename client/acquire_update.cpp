// Reading and applying responses of resource.acquire, see acquire_update.hpp.
#include "client/acquire_update.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::client {

namespace {

using Json = nlohmann::json;

[[noreturn]] void reject(std::string_view key, std::string_view what) {
  throw Error(EPROTO, fmt::format("resource.acquire: {}: {}", key, what));
}

IdSet read_idset(std::string_view key, const Json& value) {
  if (!value.is_string()) reject(key, "not a string");
  try {
    return IdSet::parse(value.get_ref<const std::string&>());
  } catch (const Error& error) {
    reject(key, error.what());
  }
}

IdSet optional_idset(std::string_view key, const Json& payload) {
  const auto found = payload.find(key);
  return found == payload.end() ? IdSet() : read_idset(key, *found);
}

AcquireUpdate::Properties optional_properties(std::string_view key, const Json& payload) {
  AcquireUpdate::Properties properties;
  const auto found = payload.find(key);
  if (found == payload.end()) return properties;
  if (!found->is_object()) reject(key, "not an object");
  for (const auto& [name, ranks] : found->items()) properties.emplace(name, read_idset(key, ranks));
  return properties;
}

void check_known(std::string_view key, const IdSet& ranks, const IdSet& known) {
  if (known.includes(ranks)) return;
  reject(key, fmt::format("targets {} are not among the resources", (ranks - known).encode()));
}

}  // namespace

Picture read_picture(const Json& payload) {
  for (const auto* key : {"resources", "up"}) {
    if (!payload.contains(key)) reject(key, "missing in the first response");
  }
  Picture picture;
  try {
    picture.resources = ResourceSet::from_json(payload.at("resources"));
  } catch (const Error& error) {
    reject("resources", error.what());
  }
  picture.up = read_idset("up", payload.at("up"));
  check_known("up", picture.up, picture.resources.ranks());
  return picture;
}

AcquireUpdate read_update(const Json& payload) {
  AcquireUpdate update;
  update.up = optional_idset("up", payload);
  update.down = optional_idset("down", payload);
  update.shrink = optional_idset("shrink", payload);
  update.property_add = optional_properties("property-add", payload);
  update.property_remove = optional_properties("property-remove", payload);
  if (const auto found = payload.find("expiration"); found != payload.end()) {
    if (!found->is_number()) reject("expiration", "not a number");
    update.expiration = found->get<double>();
  }
  return update;
}

void apply_update(Picture& picture, const AcquireUpdate& update) {
  const auto& known = picture.resources.ranks();
  check_known("up", update.up, known);
  check_known("down", update.down, known);
  check_known("shrink", update.shrink, known);
  for (const auto& [name, ranks] : update.property_add) check_known("property-add", ranks, known);
  for (const auto& [name, ranks] : update.property_remove) check_known("property-remove", ranks, known);

  const bool new_inventory = !update.shrink.empty() || !update.property_add.empty() ||
                             !update.property_remove.empty() || update.expiration.has_value();
  if (new_inventory) {
    ResourceSet resources = picture.resources;
    try {
      for (const auto& [name, ranks] : update.property_remove) resources.remove_property(name, ranks);
      for (const auto& [name, ranks] : update.property_add) resources.add_property(name, ranks);
      if (update.expiration) resources.set_expiration(*update.expiration);
      if (!update.shrink.empty()) resources.remove_ranks(update.shrink);
    } catch (const Error& error) {
      throw Error(EPROTO, fmt::format("resource.acquire: {}", error.what()));
    }
    picture.resources = std::move(resources);
  }
  picture.up |= update.up;
  picture.up -= update.down;
  picture.up -= update.shrink;
}

}  // namespace resourced::client
