// Reads the state of the resources in the KVS of a Flux instance, in the form in which Flux's own resource
// module writes and reads it: `resource.eventlog` (RFC 18, RFC 44) and `checkpoint.resource`. So an instance
// can change from one module to the other and back.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/module.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/host_index.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::daemon::instance {

/// The brokers of an instance, by which recorded ranks are mapped to present ones.
class Brokers {
 public:
  /// Makes the brokers; `hosts` has the host of each rank. `targets` is the number of ranks that may be
  /// drained: that of the brokers, or of R if that has more.
  Brokers(const text::Hostlist& hosts, std::size_t targets);

  /// Returns the present ranks of recorded ones, of which the i-th was on the i-th host: a rank with the same
  /// host stays, any other becomes the first rank of its host, and is dropped if that host is gone.
  [[nodiscard]] text::IdSet present_ranks(const text::IdSet& ranks, const text::Hostlist& hosts) const;
  /// Returns the hosts of ranks; nothing if a rank has no broker.
  [[nodiscard]] std::optional<text::Hostlist> hosts_of(const text::IdSet& ranks) const;

 private:
  text::Hostlist hosts_;
  text::HostIndex index_;
  std::size_t targets_;
};

struct KeptState {
  /// An event of the past, for the journal.
  struct Line {
    WallTime timestamp{};
    /// The event as one line of JSON, without a line end.
    std::string text;
    text::IdSet ranks;
  };
  /// Past events in the order of the log, without definitions.
  std::vector<Line> history;
  std::vector<module::DrainGroup> drains;
  /// The text that replaces the value of `resourced.actors` (kept_actors.hpp), if it has too many events.
  std::optional<std::string> rewritten_actors;
  /// The text that replaces the event log, if events were upgraded or are too old.
  std::optional<std::string> rewritten;
  /// A warning for each part of an old log that was dropped.
  std::vector<std::string> warnings;
  /// Set if the log was from before Flux 0.62: the number of events that it had, and that are left.
  struct Upgrade {
    std::size_t before = 0;
    std::size_t after = 0;
  };
  std::optional<Upgrade> upgraded;
};

/// Reads one JSON object. Throws Error EPROTO for anything else.
[[nodiscard]] nlohmann::json read_object(std::string_view text);

/// Encodes changed properties as the value of `resourced.properties`: `{"add": {NAME: IDSET}, "remove":
/// {NAME: IDSET}}`.
[[nodiscard]] nlohmann::json changes_to_json(const module::PropertyChanges& changes);
/// Decodes changed properties. Throws Error, or json::exception.
[[nodiscard]] module::PropertyChanges changes_from_json(const nlohmann::json& object);

/// Reads the values of both keys, empty for a missing key. Events before `horizon` that the checkpoint makes
/// superfluous are dropped from the log; without it all are kept. Throws Error EINVAL or EPROTO for an event
/// that cannot be read, with its line.
[[nodiscard]] KeptState read_kept_state(std::string_view eventlog, std::string_view checkpoint,
                                        const Brokers& brokers, std::optional<WallTime> horizon);

/// Returns the method of the last definition in an event log; nothing if there is none, or it cannot be read.
[[nodiscard]] std::optional<module::DefineMethod> last_definition(std::string_view eventlog);

/// Returns the line of the broker's log for a drain or undrain, which is given as its line of the event log.
[[nodiscard]] std::string drain_line(std::string_view name, std::string_view event);

/// Encodes the value of `checkpoint.resource`: the time and the present drains. All times are JSON reals,
/// because Flux refuses integers there. `targets` has the hosts of all ranks that are drained.
[[nodiscard]] std::string encode_checkpoint(WallTime now, const module::DrainTable& drains,
                                            const rset::ResourceSet& targets);

}  // namespace resourced::daemon::instance
