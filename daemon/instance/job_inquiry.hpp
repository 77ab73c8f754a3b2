// Asks the job manager of an instance for the resources that are allocated to jobs. A request for
// sched-status is answered once the answer was received. While requests wait for targets to be idle, two
// streams show when to ask again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/instance/broker.hpp"
#include "daemon/service/job_manager.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

class JobInquiry final : public service::JobManager {
 public:
  struct Callbacks {
    /// Called when the R of the jobs is known, or there is no job manager.
    std::function<void(std::optional<rset::ResourceSet>)> allocated;
    /// Answers a request for sched-status. Called after allocated().
    std::function<void(const proto::Message&)> answer;
    std::function<void(const proto::Message&, const Error&)> refuse;
    /// Calls a function from the loop.
    std::function<void(std::function<void()>)> post;
    /// Passes an answer to the requests that wait (service::JobManager).
    std::function<void(service::JobAnswer)> tell;
    std::function<bool(const text::IdSet&)> awaits;
    /// Returns whether a scheduler of the instance has acquired resources.
    std::function<bool()> has_scheduler;
    /// Adds a line to the broker's log.
    std::function<void(const std::string&)> warn;
  };
  JobInquiry(Broker& broker, Callbacks callbacks) : broker_(broker), callbacks_(std::move(callbacks)) {}

  /// Takes a request for sched-status. Requests during an inquiry share its answer. Throws Error EBUSY if too
  /// many wait.
  void ask(const proto::Message& request);
  /// Forgets the requests of a client that has disconnected.
  void forget(const proto::Message& disconnect);
  /// Answers no more requests, and reports to the owner that no allocations are known. Work that was posted
  /// before does not use this object any more.
  void end();

  std::uint64_t follow() override;
  void stop() override;

 private:
  void inquire();
  void ask_anew();
  void settle();
  void open();
  void close();
  void on_free_event(const proto::Message& answer);
  void on_freed(const proto::Message& answer);
  void take(const proto::Message& answer);
  void answer_some();
  void answer_more_later();

  Broker& broker_;
  Callbacks callbacks_;
  bool is_asking_ = false;
  /// Whether to ask again after the present answer, which may lack later changes.
  bool must_ask_again_ = false;
  /// Number of calls of follow(); the last of these for which the scheduler has answered, and the last for
  /// which the present inquiry is recent enough.
  std::uint64_t followed_ = 0;
  std::uint64_t settled_ = 0;
  std::uint64_t asked_for_ = 0;
  bool is_settling_ = false;
  /// The streams of events and of freed resources, while they are open.
  std::optional<std::uint32_t> events_;
  std::optional<std::uint32_t> freed_;
  std::vector<proto::Message> waiting_;
  /// Requests for which the job manager has answered, and the error if the answer cannot be used.
  std::deque<proto::Message> answered_;
  std::optional<Error> failure_;
  /// Null after end(), so that posted functions do nothing.
  std::shared_ptr<int> is_alive_ = std::make_shared<int>();
};

}  // namespace resourced::daemon::instance
