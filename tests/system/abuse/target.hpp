// A daemon for abuse tests, with checks that its state is the same afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fixture.hpp"
#include "wire/dealer.hpp"

namespace resourced::e2e {

/// A number from an environment variable, so that continuous integration can run more rounds than a
/// developer; `otherwise` if it is not set.
[[nodiscard]] std::size_t from_environment(const char* name, std::size_t otherwise);

/// A daemon with an ipc, a local and a CURVE endpoint, and a key for a client of each role.
class Target {
 public:
  /// `limits` has the lines of [limits].
  explicit Target(const std::string& limits = "");
  /// Ends the daemon and requires exit status 0, which a sanitizer with a finding would change.
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  [[nodiscard]] const std::string& bus() const { return daemon_.endpoints()[0]; }
  [[nodiscard]] const std::string& local() const { return daemon_.endpoints()[1]; }
  [[nodiscard]] const std::string& tcp() const { return daemon_.endpoints()[2]; }
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return daemon_.endpoints(); }
  [[nodiscard]] std::string local_path() const { return dir_ / "local"; }
  [[nodiscard]] const KeyPair& server() const { return server_; }
  /// The keys of the client with the role `admin`, `user`, `scheduler` or `agent`.
  [[nodiscard]] const KeyPair& keys(const std::string& role) const;

  /// The answers to all read-only queries.
  [[nodiscard]] nlohmann::json answers();
  /// The answer to resource.stats-get.
  [[nodiscard]] nlohmann::json stats();
  [[nodiscard]] std::size_t descriptors();
  /// Ends the daemon and starts it again from its store.
  void restart();

  /// Calls `abuse` several times. Requires that afterwards the daemon answers as before, has no more
  /// descriptors than before, and did not grow in the last round, since it reuses the memory of its pools.
  /// Prints figures.
  void survives(const char* what, const std::function<void()>& abuse, int times = 2);

 private:
  struct Vitals {
    std::size_t descriptors = 0;
    double mebibytes = 0;
  };
  [[nodiscard]] Vitals settled(std::size_t descriptors);
  [[nodiscard]] std::string configuration(const std::string& limits) const;

  TempDir dir_;
  KeyPair server_;
  std::vector<std::pair<std::string, KeyPair>> clients_{
      {"admin", {}}, {"user", {}}, {"scheduler", {}}, {"agent", {}}};
  Daemon daemon_;
  std::unique_ptr<RawClient> owner_;
};

}  // namespace resourced::e2e
