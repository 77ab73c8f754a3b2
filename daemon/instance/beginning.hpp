// Reads the inputs of an instance's module before it serves: its configuration, R, the state in the KVS, and
// the ranks that are online.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/module.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/instance/enclosing.hpp"
#include "daemon/instance/kept_state.hpp"
#include "flux/module/channel.hpp"
#include "flux/module/node.hpp"
#include "flux/module/settings.hpp"
#include "flux/module/welcome.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

/// Maximum number of values in an answer, which may describe every rank of the instance.
inline constexpr std::size_t most_values = std::size_t{1} << 24U;

/// An R, and its source.
struct Found {
  rset::ResourceSet resources;
  module::DefineMethod method = module::DefineMethod::configuration;
  /// Whether R is that of the KVS, with the changes at run time.
  bool is_recorded = false;
};

/// All inputs that are read before the module begins to serve.
struct Beginning {
  ::resourced::flux::module::Settings settings;
  ::resourced::flux::module::Arguments arguments;
  bool is_recovery = false;
  ::resourced::flux::module::Node node;
  std::optional<Found> found;
  /// The enclosing instance, if this one is a job of it.
  std::unique_ptr<Enclosing> enclosing;
  /// The expiration of the job, for resources that the brokers report.
  WallTime expiration{};
  text::IdSet online;
  text::IdSet forced_online;
  text::IdSet torpid;
  /// The matchtags of the streams with the ranks that are online, and torpid.
  std::optional<std::uint32_t> online_stream;
  std::optional<std::uint32_t> torpid_stream;
  KeptState kept;
  /// The state that the service had before the instance.
  module::State state;
  module::PropertyChanges properties;
};

/// Reads all fields of Beginning. Waits for the answers of other modules, which is possible because only the
/// start of the instance waits for this module at this time. `now` is the time of the start. Throws Error
/// with the texts of Flux.
[[nodiscard]] Beginning read_beginning(::resourced::flux::module::Channel& channel,
                                       const ::resourced::flux::module::Welcome& welcome, WallTime now);

/// Returns the ranks in `exclude`. Throws Error EINVAL with the texts of Flux.
[[nodiscard]] text::IdSet excluded_ranks(const Beginning& beginning, std::size_t size);

/// Returns the ranks in an answer of the module `groups`. Throws Error.
[[nodiscard]] text::IdSet members(const proto::Message& answer);

}  // namespace resourced::daemon::instance
