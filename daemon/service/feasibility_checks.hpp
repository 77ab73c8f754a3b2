// feasibility.check off the loop: a thread of its own reads and judges the requests, each within a budget of
// steps. The queue is bounded, and principals are served in turn, so that a principal with many checks delays
// only itself.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// A copy of the inventory. Made by the loop; the checking thread removes the exclusions.
class FeasibilityInventory {
 public:
  FeasibilityInventory(rset::ResourceSet inventory, text::IdSet excluded)
      : resources_(std::move(inventory)), excluded_(std::move(excluded)) {}
  /// The inventory less exclusions. Always to be called by the same thread.
  [[nodiscard]] const rset::ResourceSet& acquirable();

 private:
  rset::ResourceSet resources_;
  text::IdSet excluded_;
};

class FeasibilityChecks {
 public:
  using CheckId = streams::CheckId;

  /// Bound of the steps of one check: some tenths of a second.
  static constexpr std::uint64_t steps = 20'000'000;
  /// Upper bounds of the checks that wait and of their bytes, of one principal and of all.
  static constexpr std::size_t max_waiting = 1024;
  static constexpr std::size_t max_bytes = std::size_t{16} << 20;
  static constexpr std::size_t max_waiting_of_all = 4096;
  static constexpr std::size_t max_bytes_of_all = std::size_t{64} << 20;

  /// Runs a function on the loop; may be called from any thread.
  using Post = std::function<void(std::function<void()>)>;
  /// Called by the loop, without an error if the request is feasible. EINVAL: not feasible or not a jobspec;
  /// EPROTO: an invalid payload; ETIMEDOUT: beyond the budget of steps.
  using Answer = std::function<void(proto::RequestKey, const std::optional<Error>&)>;
  FeasibilityChecks(Post post, Answer answer);
  /// Waits for the check that is under way.
  ~FeasibilityChecks();
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
    /// Used by the thread of the loop only.
    bool dropped = false;
    [[nodiscard]] std::size_t bytes() const noexcept { return request.payload ? request.payload->size() : 0; }
  };
  using Queue = std::deque<std::shared_ptr<Check>>;
  struct Line {
    Queue queue;
    std::size_t bytes = 0;
  };

  /// Requires the mutex.
  void start_thread();
  void work();
  /// The next check, or null at the end.
  std::shared_ptr<Check> next();
  /// Requires the mutex.
  void remove(std::map<std::string, Line>::iterator line, const Queue::iterator& check);

  Post post_;
  Answer answer_;
  /// Checks without an answer yet. Used by the thread of the loop only.
  std::map<CheckId, std::shared_ptr<Check>> checks_;
  CheckId last_id_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Line> lines_;
  /// The principal that was served last.
  std::string served_;
  std::size_t waiting_ = 0;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace resourced::daemon::service
