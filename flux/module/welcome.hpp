// The data that the broker of a Flux instance sends to a module when it loads it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/text/hostlist.hpp"
#include "flux/module/channel.hpp"

namespace resourced::flux::module {

struct Welcome {
  /// The uuid of the module, as in routes.
  std::string uuid;
  /// The rank of the broker, less than `size`.
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  /// Hosts of the ranks, and of further ranks that R may have. Several ranks may have the same one.
  text::Hostlist hosts;
  /// The broker's attributes that never change; all values are text.
  std::map<std::string, std::string, std::less<>> attributes;
  /// The configuration of the whole instance, an object.
  nlohmann::json configuration;
  /// The arguments of the module.
  std::vector<std::string> arguments;
};

/// The descriptors that the keeper passes to its service in the environment.
struct Inherited {
  /// RESOURCED_FLUX_LINK: the socket of the link.
  int link = -1;
  /// RESOURCED_FLUX_WELCOME: a file for read_welcome().
  int welcome = -1;
  /// RESOURCED_FLUX_GENERATION: number of this service of the module.
  std::uint8_t generation = 1;
};
/// Reads the environment. Throws Error EINVAL that names the variable which is missing.
[[nodiscard]] Inherited read_environment();

/// Reads the file of this descriptor from its beginning. Throws Error EPROTO that names the key, also for a
/// hostlist that has not a host for each rank, EFBIG for a file without a reasonable end, or the errno of a
/// read that fails.
[[nodiscard]] Welcome read_welcome(int descriptor);

/// The arguments of the module, on any rank.
struct Arguments {
  bool force_up = false;
  bool noverify = false;
  bool notruncate = false;
};
/// Reads the arguments. Throws Error EINVAL, with Flux's text, for an unknown one.
[[nodiscard]] Arguments read_arguments(const Welcome& welcome);

/// Returns an attribute of the broker. One that may change is not in the welcome, so the broker is asked for
/// it; nothing if there is none. Throws Error as Channel::call().
[[nodiscard]] std::optional<std::string> read_attribute(Channel& channel, const Welcome& welcome,
                                                        const std::string& name);

}  // namespace resourced::flux::module
