// Applying changes of resource.acquire, see acquire_update.hpp.
#include "client/acquire_update.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::client {

namespace {

void check_known(std::string_view key, const IdSet& ranks, const IdSet& known) {
  if (known.includes(ranks)) return;
  throw Error(EPROTO, fmt::format("resource.acquire: {}: targets {} are not among the resources", key,
                                  (ranks - known).encode()));
}

}  // namespace

void apply_update(Picture& picture, const Delta& update) {
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
