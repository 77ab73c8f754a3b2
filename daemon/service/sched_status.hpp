// resource.sched-status: which resources are allocated and which are down, encoded once for all requests
// until this changes. The resources of very many allocations take tens of milliseconds to gather and to
// encode, so a thread does that from a copy, for one answer at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "core/module/acquisition.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "os/thread.hpp"
#include "proto/message.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {

class SchedStatus {
 public:
  /// Maximum work (Ledger::work_of_held()) for which the loop encodes the answer itself, in less than 1 ms.
  static constexpr std::size_t most_work = 8192;

  SchedStatus(const Executor& executor, const Committed& committed, const Answers& answers,
              Requests& requests, Deferral& deferral)
      : executor_(executor),
        committed_(committed),
        answers_(answers),
        requests_(requests),
        deferral_(deferral) {}
  /// Waits for the thread to end its present work.
  ~SchedStatus() = default;
  SchedStatus(const SchedStatus&) = delete;
  SchedStatus& operator=(const SchedStatus&) = delete;
  SchedStatus(SchedStatus&&) = delete;
  SchedStatus& operator=(SchedStatus&&) = delete;

  void ask(const Call& call);
  /// See Service::set_allocated().
  void set_allocated(std::optional<rset::ResourceSet> resources);
  /// Called when a request has ended.
  void release(proto::RequestKey key);

 private:
  /// The versions of the parts of an answer. Each number grows with each change.
  struct Version {
    std::uint64_t state = 0;
    std::optional<log::Sequence> shown;
    std::uint64_t reported = 0;
    std::uint64_t allocated = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  [[nodiscard]] Version version() const;
  /// Lets the thread answer the waiting requests; answers them on the loop if the system has no thread.
  void serve_waiting();
  /// Lets the thread encode the answer to the waiting requests. Returns false if the system cannot start one
  /// now.
  [[nodiscard]] bool start();
  /// Encodes the answer on the loop, and keeps it.
  void encode();
  void on_encoded(proto::Payload payload);

  [[nodiscard]] proto::topics::SchedStatusText text() const;

  const Executor& executor_;
  const Committed& committed_;
  const Answers& answers_;
  Requests& requests_;
  Deferral& deferral_;
  std::optional<rset::ResourceSet> allocated_;
  std::uint64_t allocated_version_ = 0;
  proto::Payload payload_;
  /// Version of payload_.
  Version encoded_;
  /// Requests that get the answer in work on the thread, and requests that need a later one.
  std::set<proto::RequestKey> served_;
  std::set<proto::RequestKey> waiting_;
  /// Version that the thread is encoding; unset while it does not.
  std::optional<Version> under_way_;

  os::Worker worker_;
};

}  // namespace resourced::daemon::service
