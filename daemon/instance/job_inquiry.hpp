// Asks the job manager of an instance for the resources that are allocated to jobs. A request for
// sched-status is answered once the answer has come.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/instance/broker.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

class JobInquiry {
 public:
  struct Callbacks {
    /// The R of the jobs is known, or there is no job manager.
    std::function<void(std::optional<rset::ResourceSet>)> allocated;
    /// Answers a request for sched-status. Called after allocated().
    std::function<void(const proto::Message&)> answer;
    std::function<void(const proto::Message&, const Error&)> refuse;
    /// Calls a function from the loop.
    std::function<void(std::function<void()>)> post;
  };
  JobInquiry(Broker& broker, Callbacks callbacks) : broker_(broker), callbacks_(std::move(callbacks)) {}

  /// Takes a request for sched-status. Those that come while the job manager is asked share its answer.
  /// Throws Error EBUSY if too many wait.
  void ask(const proto::Message& request);
  /// Forgets the requests of a client that has gone.
  void forget(const proto::Message& disconnect);
  /// Answers no more requests, and tells the owner that no allocations are known. Work that was posted before
  /// does not touch this object any more.
  void end();

 private:
  void take(const proto::Message& answer);
  void answer_some();
  void answer_more_later();

  Broker& broker_;
  Callbacks callbacks_;
  bool is_asking_ = false;
  std::vector<proto::Message> waiting_;
  /// Requests for which the answer of the job manager has come, and the error if it cannot be used.
  std::deque<proto::Message> answered_;
  std::optional<Error> failure_;
  /// Null after the end.
  std::shared_ptr<int> is_alive_ = std::make_shared<int>();
};

}  // namespace resourced::daemon::instance
