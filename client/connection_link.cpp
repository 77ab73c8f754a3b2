// The link of a connection with one endpoint: attempts to connect, and the requests that fail with them. See
// connection_impl.hpp.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "client/connection_impl.hpp"
#include "client/repeatable.hpp"

namespace resourced::client {

void Connection::Impl::start_link() {
  if (retry_timer_) timers_.cancel(*std::exchange(retry_timer_, std::nullopt));
  if (has_places()) return start_search();
  link_ = std::make_unique<Link>(*context_, uri_, options_, keys_, wakeup_, timers_);
  connect_timer_ = timers_.add(Clock::now() + options_.connect_timeout, [this] {
    connect_timer_.reset();
    attempt_failed(ConnectFailure::timed_out);
  });
  rearm();
}

void Connection::Impl::try_link() {
  try {
    start_link();
  } catch (const Error&) {
    retry_later();  // no descriptors left, for example; requests with wait_for_daemon keep waiting
  }
}

void Connection::Impl::on_event(Link::Event event) {
  switch (event) {
    case Link::Event::connected:
      if (connect_timer_) timers_.cancel(*std::exchange(connect_timer_, std::nullopt));
      connected_ = true;
      retry_.reset();
      return;
    case Link::Event::failed:
      attempt_failed(link_->failure());
      return;
    case Link::Event::lost:
      // Messages from before the loss are read first.
      losing_ = true;
      return;
  }
}

void Connection::Impl::drop_link() {
  for (auto* timer : {&connect_timer_, &leaving_timer_, &probe_timer_}) {
    if (*timer) timers_.cancel(*std::exchange(*timer, std::nullopt));
  }
  probe_.reset();
  end_hold();
  link_.reset();
  connected_ = false;
  losing_ = false;
  tags_.clear();
  by_tag_.clear();
}

void Connection::Impl::attempt_failed(ConnectFailure failure) {
  drop_link();
  last_failure_ = failure;
  ++failed_attempts_;
  std::deque<Outgoing> waiting;
  std::vector<RequestId> failed;
  for (auto& entry : std::exchange(outgoing_, {})) {
    const Request* request = find_open(entry.id);
    if (request == nullptr) continue;
    if (request->wait_for_daemon && !is_final(failure)) {
      waiting.push_back(std::move(entry));
    } else {
      failed.push_back(entry.id);
    }
  }
  outgoing_ = std::move(waiting);
  fail_unreached(failed);
  if (!outgoing_.empty()) retry_later();
}

void Connection::Impl::fail_unreached(const std::vector<RequestId>& ids) {
  if (ids.empty()) return;
  unexplained_.insert(unexplained_.end(), ids.begin(), ids.end());
  if (explanation_) return;
  const auto why = [failure = last_failure_, uri = uri_, file = keys_ ? options_.key_file : std::string()] {
    return explain(failure, uri, file);
  };
  try {
    explanation_ = may_take_long(last_failure_, uri_) ? Background<Error>(std::function<Error()>(why))
                                                      : Background<Error>(why());
    wakeup_.add(explanation_->fd());
  } catch (const Error& error) {
    explanation_.reset();
    for (const RequestId id : std::exchange(unexplained_, {})) fail(id, error);
  }
}

bool Connection::Impl::deliver_explanation() {
  if (!explanation_ || !explanation_->is_over()) return false;
  wakeup_.remove(explanation_->fd());
  const Error error = explanation_->take();
  explanation_.reset();
  for (const RequestId id : std::exchange(unexplained_, {})) fail(id, error);
  return true;
}

void Connection::Impl::retry_later() {
  retry_timer_ = timers_.add(Clock::now() + (has_places() ? retry_.next(random_) : retry_.next()), [this] {
    retry_timer_.reset();
    if (!link_ && !search_) try_link();
  });
}

Error Connection::Impl::lost_error(std::string_view topic) const {
  return {ECONNRESET,
          fmt::format("lost the connection to the daemon at {}{}", uri_,
                      has_places() && is_change(topic)
                          ? "; the change may have been made, which the status or the event log shows"
                          : "")};
}

Error Connection::Impl::attempt_error() const {
  return explain(last_failure_, uri_, keys_ ? options_.key_file : std::string());
}

}  // namespace resourced::client
