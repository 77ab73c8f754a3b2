// The data that the broker of a Flux instance sends to a module when it loads it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/text/hostlist.hpp"

namespace resourced::flux::module {

struct Welcome {
  /// The uuid of the module, as in routes.
  std::string uuid;
  /// The rank of the broker, less than `size`.
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  /// The host of each rank. Several ranks may have the same one.
  text::Hostlist hosts;
  /// The broker's attributes that never change; all values are text.
  std::map<std::string, std::string, std::less<>> attributes;
  /// The configuration of the whole instance, an object.
  nlohmann::json configuration;
  /// The arguments of the module.
  std::vector<std::string> arguments;
};

/// Reads the file of this descriptor from its beginning. Throws Error EPROTO that names the key, or the errno
/// of a read that fails.
[[nodiscard]] Welcome read_welcome(int descriptor);

}  // namespace resourced::flux::module
