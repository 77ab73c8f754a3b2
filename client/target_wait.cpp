#include "client/target_wait.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "client/backoff.hpp"
#include "client/repeatable.hpp"
#include "proto/topics/wait.hpp"

namespace resourced::client {
namespace {

constexpr BackoffLimits wait_pauses{Milliseconds(20), Milliseconds(500)};

proto::topics::WaitRequest request_of(const TargetWaitOptions& options) {
  proto::topics::WaitRequest request;
  request.targets = options.targets;
  request.condition = options.condition == TargetWaitOptions::Condition::idle ? module::WaitCondition::idle
                                                                              : module::WaitCondition::ready;
  if (options.assume_idle) request.unreported = module::Unreported::assume_idle;
  return request;
}

}  // namespace

// Shared with the handlers of its request and timer: done() may destroy the wait.
class TargetWait::Impl : public std::enable_shared_from_this<TargetWait::Impl> {
 public:
  Impl(Connection& connection, const TargetWaitOptions& options, Done done)
      : connection_(connection), wanted_(request_of(options)), done_(std::move(done)) {}

  void ask() {
    SendOptions options;
    options.wait_for_daemon = true;
    request_ = connection_.send(
        "resource.wait", proto::topics::encode_wait(wanted_),
        [self = shared_from_this()](const Response& response) { self->receive(response); }, options);
  }

  void close() {
    done_ = nullptr;
    if (timer_) connection_.cancel_timer(*std::exchange(timer_, std::nullopt));
    if (!request_) return;
    connection_.cancel(*request_);
    connection_.forget(*request_);
  }

 private:
  void receive(const Response& response) {
    request_.reset();
    if (response.ok() || !is_interruption(response)) {
      const auto done = std::exchange(done_, nullptr);
      if (done) done(response.ok() ? std::nullopt : std::optional(response.error()));
      return;
    }
    // Wait for unreported targets, because the next daemon may start before the schedulers reconnect.
    if (wanted_.unreported == module::Unreported::refuse) wanted_.unreported = module::Unreported::wait;
    timer_ = connection_.after(pause_.next(), [self = shared_from_this()] {
      self->timer_.reset();
      self->ask();
    });
  }

  Connection& connection_;
  proto::topics::WaitRequest wanted_;
  Done done_;
  std::optional<Connection::RequestId> request_;
  std::optional<Connection::TimerId> timer_;
  Backoff pause_{wait_pauses};
};

TargetWait::TargetWait(Connection& connection, const TargetWaitOptions& options, Done done)
    : impl_(std::make_shared<Impl>(connection, options, std::move(done))) {
  impl_->ask();
}

TargetWait::~TargetWait() { impl_->close(); }

}  // namespace resourced::client
