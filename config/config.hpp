// The daemon's configuration as typed values, read from TOML: the [resource] table as Flux sites write it,
// and this daemon's own tables. config/inventory.hpp reads the inventory; the effect of the values on
// targets, partitions and transports is defined by the code that uses them.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/access.hpp"
#include "config/cluster.hpp"
#include "config/http.hpp"
#include "config/queues.hpp"
#include "core/error.hpp"
#include "core/rset/verify.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::config {

// The settings of [monitor]. core/nodes/monitor.hpp defines the effect of the times on a target.

/// The source of the online state: targets are always online, or online by the reports of node agents.
enum class MonitorMode : std::uint8_t { fixed, agents };

/// Reads `static` or `agents`. Throws Error EINVAL for another text.
[[nodiscard]] MonitorMode parse_monitor_mode(std::string_view text);
[[nodiscard]] std::string_view to_text(MonitorMode mode) noexcept;

/// Whether an operator or the daemon undrains nodes that were unhealthy or silent.
enum class HealthReturn : std::uint8_t { manual, automatic };

/// Reads `manual` or `auto`. Throws Error EINVAL for another text.
[[nodiscard]] HealthReturn parse_health_return(std::string_view text);
[[nodiscard]] std::string_view to_text(HealthReturn on_return) noexcept;

/// Values of [monitor]. A time of `forever` turns a change of state off.
struct Monitor {
  MonitorMode mode = MonitorMode::fixed;
  Seconds torpid_after{30};    ///< more than 0
  Seconds offline_after{120};  ///< more than 0
  Seconds grace{10};
  Seconds coalesce{0.2};       ///< at most a minute
  std::size_t flap_count = 5;  ///< 0: flapping is ignored
  Seconds flap_window{600};
  Seconds lost_after{120};  ///< offline_after unless set
  Seconds drain_lost = forever;
  HealthReturn health_return = HealthReturn::manual;
  bool health_gate = false;
  friend bool operator==(const Monitor&, const Monitor&) = default;
};

class Document;

/// One [[resource.config]] entry. Empty cores, gpus or properties add nothing to the hosts.
struct ResourceEntry {
  text::Hostlist hosts;
  text::IdSet cores;
  text::IdSet gpus;
  std::vector<std::string> properties;
  friend bool operator==(const ResourceEntry&, const ResourceEntry&) = default;
};

/// Values of [resource]. Paths are absolute, or relative to the working directory if the path of the
/// configuration is relative. Where `parent_uri` is set, the R of `path` or `parent_r` was assigned by that
/// instance.
struct Resource {
  std::string path;                    ///< an R file; "" when not set, or replaced by `config`
  std::vector<ResourceEntry> entries;  ///< [[resource.config]]
  std::string scheduling;              ///< a JSON file for R's scheduling key; "" when not set
  std::string exclude;                 ///< idset or hostlist text; resolved by load_inventory()
  bool norestrict = false;
  bool noverify = false;
  rset::VerifyOptions verify;  ///< [resource.verify], with `default` and `noverify` already applied
  bool no_update_watch = false;
  bool rediscover = false;
  std::size_t journal_max = 100000;  ///< events kept in memory for the journal; at least 1
  std::string parent_uri;            ///< "" when not set
  /// The value of $RESOURCED_PARENT_R: an R, or the path of its file. The daemon sets it, not load(), and
  /// only if no other setting names the R of an enclosing instance.
  std::string parent_r;
  std::string parent_key_file;  ///< "" when not set
  Seconds parent_settle{30};
  text::Hostlist rerank;  ///< hosts of an R from the parent, in order of rank; may be empty
  std::optional<std::uint32_t> size;
  Seconds discovery_timeout = forever;
  bool shrink_lost = false;

  /// Whether the configuration itself names an inventory.
  [[nodiscard]] bool has_inventory() const noexcept {
    return !path.empty() || !entries.empty() || !parent_r.empty();
  }
};

/// Values of [bus].
struct Bus {
  std::vector<std::string> listen;  ///< ipc://, tcp:// or local:// URIs; empty: the daemon chooses
  int send_hwm = 1000;              ///< messages; at least 1
  int receive_hwm = 1000;           ///< messages; at least 1
  std::chrono::milliseconds heartbeat_interval{5000};
  std::chrono::milliseconds heartbeat_timeout{15000};    ///< never below heartbeat_interval
  std::size_t max_message_size = std::size_t{64} << 20;  ///< bytes
  std::string curve_key_file;                            ///< "" when not set
  /// Mode of local sockets. Ipc sockets use its bits for the owner and, where socket_group is set, for the
  /// group.
  std::uint32_t socket_mode = 0666;
  std::optional<std::uint32_t> socket_group;  ///< gid; when not set, only the owner may use ipc sockets
  bool insecure = false;                      ///< allow tcp endpoints without CURVE on all interfaces
  friend bool operator==(const Bus&, const Bus&) = default;
};

/// Values of [store].
struct Store {
  std::string directory;      ///< "" when not set: the daemon chooses
  Seconds history = forever;  ///< for how long past events are kept
  friend bool operator==(const Store&, const Store&) = default;
};

/// Levels in the order, and with the numbers, of os::Level.
enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, critical, off };

/// Values of [log].
struct Log {
  LogLevel level = LogLevel::info;
  friend bool operator==(const Log&, const Log&) = default;
};

/// One [[acquire.partition]]. Exactly one of targets and constraint is set.
struct Partition {
  std::string name;
  std::optional<std::string> targets;     ///< idset or hostlist text
  std::optional<std::string> constraint;  ///< RFC 35 query
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Values of [acquire].
struct Acquire {
  std::vector<Partition> partitions;  ///< names are unique
  Seconds keep{0};                    ///< for how long a lost scheduler that can resume keeps its resources
  friend bool operator==(const Acquire&, const Acquire&) = default;
};

/// Values of [allocations].
struct Allocations {
  std::size_t max_bytes = std::size_t{64} << 20;  ///< bytes of all; with partitions, half for one
  bool free_expired = false;
  friend bool operator==(const Allocations&, const Allocations&) = default;
};

/// Values of [limits]: limits of one client. The size of a message is Bus::max_message_size.
struct Limits {
  std::size_t outstanding_requests = 1024;             ///< of one client, streams included
  std::size_t requests_per_second = 50000;             ///< of one client; a burst may have as many
  std::size_t connections_per_uid = 4096;              ///< on TCP of one address; on all endpoints together
  std::size_t journal_consumers = 1024;                ///< of one uid, key or address
  std::chrono::milliseconds handshake_timeout{10000};  ///< also until a local frame is complete
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Values of [flux]: a Flux instance that may attach.
struct Flux {
  std::string socket;                 ///< a path; "" when not set
  std::optional<std::uint32_t> user;  ///< the uid that may attach, besides root and the daemon's own
  friend bool operator==(const Flux&, const Flux&) = default;
};

struct Config {
  Resource resource;
  Bus bus;
  Store store;
  Log log;
  Acquire acquire;
  Allocations allocations;
  Access access;
  Limits limits;
  Monitor monitor;
  Flux flux;
  Http http;
  Cluster cluster;
  std::vector<Queue> queues;  ///< queues with `hosts`

  /// Log lines for ignored values, which the caller of load() logs: one for each table or key of other parts
  /// of Flux, because the daemon accepts a site's whole Flux configuration, and one for each value and file
  /// that another file replaces.
  std::vector<std::string> passed_over;

  /// The document that was read, with the file and line of each value. Never null after load().
  std::shared_ptr<const Document> document;

  /// Returns the files that were read, in order; relative paths in them have been resolved.
  [[nodiscard]] const std::vector<std::string>& files() const;
  /// Returns "FILE:LINE" of a key (`resource.exclude`, `acquire.partition[1].targets`) or of the nearest
  /// table around it; "" if neither was written.
  [[nodiscard]] std::string where(std::string_view key) const;
  /// Returns an error about a value, found after loading: "FILE:LINE: KEY: TEXT".
  [[nodiscard]] Error fault(std::string_view key, std::string_view text, int errnum = EINVAL) const;
  /// Returns the result of `read`. If it throws Error, throws the fault() of the key with its text.
  template <class Read>
  auto checked(std::string_view key, const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      throw fault(key, error.what(), error.errnum());
    }
  }
};

/// Reads a file, or the *.toml files of a directory in name order. In a directory tables merge, and a later
/// file's scalar or array (an array of tables too) takes the place of an earlier file's. Throws Error: EINVAL
/// "FILE:LINE: KEY: ..." for a syntax error, an unknown key, a wrong type or a bad value; EFBIG for files
/// beyond 16 MiB in all; ENOENT for a directory without *.toml; otherwise the errno of the failed read.
[[nodiscard]] Config load(const std::string& path);

/// Returns the configuration as one object in Flux's key names: the written keys, and the values in force of
/// settings that are always shown (Shown). The resource table is as the site wrote it.
[[nodiscard]] nlohmann::json to_json(const Config& config);

/// Reads `trace`, `debug`, `info`, `warning`, `error`, `critical` or `off`. Throws Error EINVAL that lists
/// them.
[[nodiscard]] LogLevel parse_log_level(std::string_view text);
[[nodiscard]] std::string_view to_text(LogLevel level) noexcept;

}  // namespace resourced::config
