// Runs feasibility.check off the loop: a thread of its own reads and judges the requests, each within a
// budget of steps. The queue is bounded, and principals are served in turn, so that a principal with many
// checks delays only itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"
#include "os/thread.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// A copy of the inventory. The loop makes it; the checking thread removes the exclusions.
class FeasibilityInventory {
 public:
  FeasibilityInventory(rset::ResourceSet inventory, text::IdSet excluded)
      : resources_(std::move(inventory)), excluded_(std::move(excluded)) {}
  /// Returns the inventory without excluded targets. Always call it on the same thread.
  [[nodiscard]] const rset::ResourceSet& acquirable();

 private:
  rset::ResourceSet resources_;
  text::IdSet excluded_;
};

class FeasibilityChecks {
 public:
  using CheckId = streams::CheckId;

  /// Maximum number of steps of one check, some tenths of a second.
  static constexpr std::uint64_t steps = 20'000'000;
  /// Limits of the waiting checks and their bytes: of one principal, and of all.
  static constexpr std::size_t max_waiting = 1024;
  static constexpr std::size_t max_bytes = std::size_t{16} << 20;
  static constexpr std::size_t max_waiting_of_all = 4096;
  static constexpr std::size_t max_bytes_of_all = std::size_t{64} << 20;

  /// Answers the `requests`: with success if they are feasible, else with Error EINVAL (not feasible or not a
  /// jobspec), EPROTO (invalid payload) or ETIMEDOUT (beyond the budget of steps).
  FeasibilityChecks(Requests& requests, Deferral& deferral) : requests_(requests), deferral_(deferral) {}
  /// Waits for the running check.
  ~FeasibilityChecks() = default;
  FeasibilityChecks(const FeasibilityChecks&) = delete;
  FeasibilityChecks& operator=(const FeasibilityChecks&) = delete;
  FeasibilityChecks(FeasibilityChecks&&) = delete;
  FeasibilityChecks& operator=(FeasibilityChecks&&) = delete;

  /// Queues a check of `principal`, whose payload may have `most_values` values. Throws Error EBUSY when too
  /// many checks or bytes wait, EAGAIN when the system has no thread for them now.
  CheckId add(proto::RequestKey key, const std::string& principal, proto::Message request,
              std::size_t most_values, std::shared_ptr<FeasibilityInventory> inventory);
  /// Drops a check whose client is gone or has disconnected. Ignores an unknown one.
  void drop(CheckId id);

 private:
  struct Check {
    CheckId id = 0;
    proto::RequestKey key;
    std::string principal;
    proto::Message request;
    std::size_t most_values = 0;
    std::shared_ptr<FeasibilityInventory> inventory;
    bool dropped = false;
    [[nodiscard]] std::size_t bytes() const noexcept { return request.payload ? request.payload->size() : 0; }
  };
  using Queue = std::deque<std::shared_ptr<Check>>;
  struct Line {
    Queue queue;
    std::size_t bytes = 0;
  };

  /// Passes the next check to the thread, unless the thread has one.
  void check_next();
  void remove(std::map<std::string, Line>::iterator line, const Queue::iterator& check);

  Requests& requests_;
  Deferral& deferral_;
  /// Checks that are not answered yet.
  std::map<CheckId, std::shared_ptr<Check>> checks_;
  CheckId last_id_ = 0;

  std::map<std::string, Line> lines_;
  /// The principal that was served last.
  std::string served_;
  std::size_t waiting_ = 0;
  std::size_t bytes_ = 0;
  bool is_checking_ = false;
  os::Worker worker_;
};

}  // namespace resourced::daemon::service
