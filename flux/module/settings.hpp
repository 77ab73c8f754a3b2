// The table [resource] of a Flux instance's configuration, as each rank reads it. Error texts are those of
// Flux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/rset/verify.hpp"
#include "core/text/hostlist.hpp"
#include "core/time.hpp"

namespace resourced::flux::module {

struct Settings {
  /// The R from `config` or else from `path`, on the leader with `scheduling`. If the configuration has a
  /// table `bootstrap`, its ranks follow `hosts`.
  std::optional<rset::ResourceSet> resources;
  /// Ranks or hosts that are never up; empty if not set.
  std::string exclude;
  bool norestrict = false;
  bool noverify = false;
  bool rediscover = false;
  bool no_update_watch = false;
  rset::VerifyOptions verify;
  /// Whether the configuration says how to verify.
  bool is_verify_set = false;
  std::uint64_t journal_max = 100000;
  /// Time for which events are kept.
  Seconds history{90.0 * 24 * 3600};
  /// Whether systemd starts the processes of the instance (systemd.enable).
  bool systemd = false;
};

/// Reads the configuration of the whole instance. `hosts` has the host of each rank. Throws Error EINVAL.
[[nodiscard]] Settings read_settings(const nlohmann::json& configuration, std::uint32_t rank,
                                     const text::Hostlist& hosts);

}  // namespace resourced::flux::module
