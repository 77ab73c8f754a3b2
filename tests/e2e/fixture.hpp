// What most end-to-end tests start with: a daemon in a directory of its own, and ways to talk to it.
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

// Nearly every line of these tests is about one of its clients.
using namespace wire;

/// Linux errno numbers as they stand on the wire, written out because RFC 6 has numbers and not names.
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
  /// On eight_nodes, after these lines of configuration.
  explicit Cluster(std::string_view config) : Cluster(DaemonOptions{.config = std::string(config)}) {}
  /// The same, with its files below a directory of the caller's choice.
  Cluster(std::string_view config, const std::filesystem::path& parent)
      : dir(parent), daemon(dir, {.config = std::string(config)}) {}

  /// Drains or undrains as an operator does, and requires that it works.
  void drain(const std::string& targets, const std::string& reason = "test");
  void undrain(const std::string& targets);
  [[nodiscard]] nlohmann::json status();

  TempDir dir;
  Daemon daemon;
  Ctl ctl{daemon.uri()};
  RawClient operator_client{daemon.uri()};
};

/// The ids of an idset in canonical form, by the letter of RFC 22 and without regard to speed.
[[nodiscard]] std::set<unsigned> ids(std::string_view idset);

/// Takes what has come for a client, without waiting for more.
template <typename Take>
void take_arrived(RawClient& client, const Take& take) {
  try {
    while (true) take(client.receive(Deadline(std::chrono::milliseconds(0))));
  } catch (const Timeout&) {
    return;
  }
}

/// The history that the journal has for a request such as {"since": T}, up to the sentinel.
[[nodiscard]] std::vector<nlohmann::json> history(RawClient& client,
                                                  const nlohmann::json& payload = nlohmann::json::object());

/// The ranks that a status answer calls drained.
[[nodiscard]] std::set<unsigned> drained_ranks(const nlohmann::json& status);

/// What a scheduler knows by replaying the responses of one acquire (rule 3 of acquisition), each of which is
/// held to rules 1 and 2 on the way. Violations are test failures.
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

/// Holds an instance's resources, and hears of changes.
struct Scheduler {
  explicit Scheduler(const std::string& uri) : client(uri), stream(client.acquire()), first(next()) {}
  nlohmann::json next() {
    nlohmann::json response = client.receive(stream).json();
    view.apply(response);
    return response;
  }
  /// Takes responses until these targets are up and no other.
  void until_up(const std::string& targets) {
    while (view.up() != ids(targets)) next();
  }

  RawClient client;
  std::uint32_t stream;
  SchedulerView view;
  nlohmann::json first;
};

/// Takes a log into the state directory that a Daemon in `dir` will use.
[[nodiscard]] Outcome import_log(const TempDir& dir, const std::string& config,
                                 const std::filesystem::path& log);

/// For messages and ratios.
[[nodiscard]] double milliseconds(std::chrono::steady_clock::duration time);

}  // namespace resourced::e2e
