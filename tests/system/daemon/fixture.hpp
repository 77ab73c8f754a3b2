// Shared by most end-to-end tests: a daemon in a directory of its own, and clients for it.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/ctl.hpp"
#include "harness/daemon.hpp"
#include "wire/raw_client.hpp"

namespace resourced::e2e {

// Nearly every line of these tests uses a client of this namespace.
using namespace wire;

/// Linux errno numbers on the wire, as literals because RFC 6 defines numbers and not names.
namespace wire_errno {
inline constexpr std::uint32_t perm = 1;
inline constexpr std::uint32_t noent = 2;
inline constexpr std::uint32_t again = 11;
inline constexpr std::uint32_t busy = 16;
inline constexpr std::uint32_t exist = 17;
inline constexpr std::uint32_t inval = 22;
inline constexpr std::uint32_t range = 34;
inline constexpr std::uint32_t nosys = 38;
inline constexpr std::uint32_t nodata = 61;
inline constexpr std::uint32_t proto = 71;
inline constexpr std::uint32_t msgsize = 90;
inline constexpr std::uint32_t canceled = 125;
}  // namespace wire_errno

struct Cluster {
  explicit Cluster(DaemonOptions options = {}) : daemon(dir, std::move(options)) {}
  /// A cluster with this configuration instead of eight_nodes.
  explicit Cluster(std::string_view config) : Cluster(DaemonOptions{.config = std::string(config)}) {}
  /// A cluster with this configuration, and with its files below `parent`.
  Cluster(std::string_view config, const std::filesystem::path& parent)
      : dir(parent), daemon(dir, {.config = std::string(config)}) {}

  /// Drains or undrains as an operator; throws if that fails.
  void drain(const std::string& targets, const std::string& reason = "test");
  void undrain(const std::string& targets);
  [[nodiscard]] nlohmann::json status();

  TempDir dir;
  Daemon daemon;
  Ctl ctl{daemon.uri()};
  RawClient operator_client{daemon.uri()};
};

/// The ids of an idset in canonical form, by a simple parser after RFC 22.
[[nodiscard]] std::set<unsigned> ids(std::string_view idset);

/// Receives the messages that have arrived for a client, without waiting for more.
template <typename Take>
void take_arrived(RawClient& client, const Take& take) {
  try {
    while (true) take(client.receive(Deadline(std::chrono::milliseconds(0))));
  } catch (const Timeout&) {
    return;
  }
}

/// The history of the journal for a request such as {"since": T}, up to the sentinel.
[[nodiscard]] std::vector<nlohmann::json> history(RawClient& client,
                                                  const nlohmann::json& payload = nlohmann::json::object());

/// The drained ranks of a resource.status response.
[[nodiscard]] std::set<unsigned> drained_ranks(const nlohmann::json& status);

/// The view of a scheduler from the responses of one acquire (rule 3 of acquisition). Each response is
/// checked against rules 1 and 2; violations are test failures.
class SchedulerView {
 public:
  void apply(const nlohmann::json& response);

  [[nodiscard]] const std::set<unsigned>& targets() const { return targets_; }
  [[nodiscard]] const std::set<unsigned>& up() const { return up_; }

 private:
  bool first_ = true;
  std::set<unsigned> targets_;
  std::set<unsigned> up_;
};

/// Holds the resources of an instance, and receives changes.
struct Scheduler {
  explicit Scheduler(const std::string& uri) : client(uri), stream(client.acquire()), first(next()) {}
  nlohmann::json next() {
    nlohmann::json response = client.receive(stream).json();
    view.apply(response);
    return response;
  }
  /// Receives responses until exactly these targets are up.
  void until_up(const std::string& targets) {
    while (view.up() != ids(targets)) next();
  }

  RawClient client;
  std::uint32_t stream;
  SchedulerView view;
  nlohmann::json first;
};

/// Imports a log into the state directory that a Daemon in `dir` will use.
[[nodiscard]] Outcome import_log(const TempDir& dir, const std::string& config,
                                 const std::filesystem::path& log);

/// The lines of a text, without their newlines.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

/// Waits until the log contains this text, as the daemon may answer before it writes. Throws Timeout.
void until_logged(const Daemon& daemon, const std::string& text);

/// The user of this test as the daemon's log names it: `root (uid 0)`.
[[nodiscard]] std::string own_name();

/// A duration in milliseconds, for messages and ratios.
[[nodiscard]] double milliseconds(std::chrono::steady_clock::duration time);

}  // namespace resourced::e2e
