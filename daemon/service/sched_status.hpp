// resource.sched-status: what is allocated and what is down, encoded once for all requests until it changes.
// The resources of very many allocations take tens of milliseconds to gather and to encode, so a thread does
// that from a copy, for one answer at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/module/acquisition.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/replica.hpp"
#include "daemon/service/requests.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class SchedStatus {
 public:
  /// Runs a function on the loop; may be called from any thread.
  using Post = std::function<void(std::function<void()>)>;
  /// Up to this work (Ledger::work_of_held()) the loop encodes it itself, in less than a millisecond.
  static constexpr std::size_t most_work = 8192;

  /// The answers are those of the `replica`, if there is one.
  SchedStatus(const Executor& executor, Requests& requests, Replica* replica, Post post)
      : executor_(executor), requests_(requests), replica_(replica), post_(std::move(post)) {}
  /// Waits for the thread.
  ~SchedStatus();
  SchedStatus(const SchedStatus&) = delete;
  SchedStatus& operator=(const SchedStatus&) = delete;
  SchedStatus(SchedStatus&&) = delete;
  SchedStatus& operator=(SchedStatus&&) = delete;

  void ask(const Call& call);
  /// As Service::set_allocated().
  void set_allocated(std::optional<rset::ResourceSet> resources);
  /// A request has ended.
  void release(proto::RequestKey key);

 private:
  /// The versions of the parts of an answer. Each number grows with each change.
  struct Version {
    std::uint64_t state = 0;
    std::uint64_t ledger = 0;
    std::uint64_t reported = 0;
    std::uint64_t allocated = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  [[nodiscard]] Version version() const;
  /// Has the thread answer the requests that wait, or answers them without one.
  void serve_waiting();
  /// Has the thread encode the answer of the requests that wait. Returns false if the system cannot start one
  /// now.
  [[nodiscard]] bool start();
  /// Runs on the thread.
  void work();
  /// Encodes the answer on the loop, and keeps it.
  void encode();
  void on_encoded(proto::Payload payload);

  const Executor& executor_;
  Requests& requests_;
  Replica* replica_;
  Post post_;
  std::optional<rset::ResourceSet> allocated_;
  std::uint64_t allocated_version_ = 0;
  proto::Payload payload_;
  /// The version of the payload.
  Version encoded_;
  /// The requests whose answer the thread encodes, and later ones.
  std::set<proto::RequestKey> served_;
  std::set<proto::RequestKey> waiting_;
  /// The version that the thread encodes, while it does.
  std::optional<Version> under_way_;

  std::mutex mutex_;
  std::condition_variable wake_;
  /// The next work of the thread.
  std::function<void()> work_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace resourced::daemon::service
