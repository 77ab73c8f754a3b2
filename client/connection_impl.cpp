// The implementation of a connection: sending, receiving and failing, see connection_impl.hpp. Its link is in
// connection_link.cpp.
#include "client/connection_impl.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>

#include "client/repeatable.hpp"
#include "proto/message.hpp"
#include "proto/uri.hpp"

namespace resourced::client {
namespace {

Response response_of(proto::Message message) {
  if (message.errnum() != 0) return {message.topic, proto::response_error(message), false};
  const bool last = proto::is_final(message);
  return {std::move(message.topic), std::move(message.payload), last};
}

ConnectionOptions with_bounded_times(ConnectionOptions options) {
  for (Milliseconds* time : {&options.connect_timeout, &options.call_timeout, &options.failover_timeout,
                             &options.linger, &options.retry_first, &options.retry_most})
    *time = bounded(*time);
  for (auto* time : {&options.heartbeat_interval, &options.heartbeat_timeout}) {
    if (*time) *time = bounded(**time);
  }
  return options;
}

}  // namespace

Connection::Impl::Impl(std::string uri, const ConnectionOptions& options, std::optional<proto::KeyFile> keys)
    : uri_(std::move(uri)),
      places_(proto::split_uris(uri_)),
      options_(with_bounded_times(options)),
      keys_(std::move(keys)),
      hold_({options_.retry_first, options_.retry_most}),
      retry_({options_.retry_first, options_.retry_most}) {
  using std::chrono::seconds;
  options_.heartbeat_interval = options_.heartbeat_interval.value_or(seconds(has_places() ? 1 : 5));
  options_.heartbeat_timeout = options_.heartbeat_timeout.value_or(seconds(has_places() ? 3 : 15));
}

void Connection::Impl::refuse_in_child(std::string_view what) const {
  if (!is_inherited()) return;
  throw Error(ENOTCONN,
              fmt::format("{}: the connection to {} belongs to the process that made it: make another "
                          "one in a forked child",
                          what, uri_));
}

void Connection::Impl::refuse_inside_handler(const char* function) const {
  refuse_in_child(function);
  if (processing_) throw Error(EDEADLK, fmt::format("{} called from a handler", function));
}

// Functions for callers

void Connection::Impl::connect() {
  refuse_inside_handler("connect()");
  if (closed_) throw Error(ENOTCONN, fmt::format("the connection to {} is closed", uri_));
  if (has_places()) return connect_places();
  const auto failed_before = failed_attempts_;
  if (!link_) start_link();
  while (!connected_) {
    if (failed_attempts_ != failed_before) throw attempt_error();
    // The connection was made, and was lost before wait() returned.
    if (!link_ && !closed_) throw lost_error();
    wait(Milliseconds(-1));
  }
}

Connection::RequestId Connection::Impl::send(proto::Message request, Handler handler,
                                             const SendOptions& options) {
  refuse_in_child(request.topic);
  if (closed_) throw Error(ENOTCONN, fmt::format("{}: the connection is closed", request.topic));
  // A request with wait_for_daemon does not start an attempt before its time.
  if (!link_ && !options.wait_for_daemon && !has_places()) start_link();
  if (!link_ && !search_ && !retry_timer_) try_link();
  const RequestId id = ++last_id_;
  auto entry = std::make_shared<Request>();
  entry->message = std::move(request);
  entry->handler = std::move(handler);
  entry->wait_for_daemon = options.wait_for_daemon || has_places();
  entry->answer_timeout = bounded(options.answer_timeout);
  if (options.timeout > Milliseconds(0)) {
    entry->timer = timers_.add(Clock::now() + bounded(options.timeout),
                               [this, id, timeout = options.timeout] { time_out(id, timeout); });
  }
  if (has_places()) look_at_link();
  if (options.streaming) services_.emplace(proto::split_topic(entry->message.topic).service);
  requests_.emplace(id, std::move(entry));
  const bool waits = hold_timer_ && !is_question(requests_.at(id)->message.topic);
  (waits ? held_ : outgoing_).push_back({id, {}});
  flush();
  rearm();
  return id;
}

void Connection::Impl::cancel(RequestId id) {
  if (is_inherited()) return;
  const Request* request = find_open(id);
  if (request == nullptr) return;
  if (request->sent) {
    notify(proto::make_cancel(request->message));
    return;
  }
  fail(id, Error(ECANCELED, fmt::format("{}: canceled before it was sent", request->message.topic)));
  rearm();
}

void Connection::Impl::forget(RequestId id) {
  if (is_inherited()) return;
  const auto request = take(id);
  if (request && request->sent && !request->failure) {
    tags_.cancel(request->message.matchtag);
    by_tag_.erase(request->message.matchtag);
  }
  rearm();
}

void Connection::Impl::notify(proto::Message message) {
  refuse_in_child(message.topic);
  if (!connected_) return;
  outgoing_.push_back({0, std::move(message)});
  flush();
  rearm();
}

Connection::TimerId Connection::Impl::after(Milliseconds delay, std::function<void()> f) {
  refuse_in_child("after()");
  if (closed_) return 0;
  const auto id = timers_.add(Clock::now() + bounded(delay), std::move(f));
  rearm();
  return id;
}

void Connection::Impl::cancel_timer(TimerId id) {
  if (is_inherited()) return;
  timers_.cancel(id);
  rearm();
}

void Connection::Impl::close() {
  if (closed_ || is_inherited()) return;
  if (connected_ && !losing_) say_goodbye();
  closed_ = true;
  drop_link();
  search_.reset();
  // Destroying a handler may run code that calls this object. It must not find a map that is being cleared.
  const auto requests = std::exchange(requests_, {});
  outgoing_.clear();
  failures_.clear();
  if (explanation_) wakeup_.remove(explanation_->fd());
  explanation_.reset();
  timers_.clear();
  retry_timer_.reset();
  // Destroying the context waits for messages on their way out.
  context_.reset();
  rearm();
}

void Connection::Impl::say_goodbye() {
  const auto end = Clock::now() + options_.linger;
  const auto left = [&] {
    return std::max(std::chrono::ceil<Milliseconds>(end - Clock::now()), Milliseconds(0));
  };
  for (const auto& service : services_)
    outgoing_.push_back(
        {0, proto::make_request(service + ".disconnect", 0, nullptr, proto::flag::noresponse)});
  // Leave out requests: they wait for a matchtag, or for room, and their answers would find no handler.
  for (const Outgoing& entry : outgoing_) {
    if (entry.id == 0 && !leaving_timer_ && !link_->send_last(entry.message, left())) break;
  }
  link_->set_linger(left());
}

// Functions of the loop

void Connection::Impl::process() {
  refuse_inside_handler("process()");
  struct Guard {
    Impl& impl;
    explicit Guard(Impl& i) : impl(i) { impl.processing_ = true; }
    ~Guard() {
      impl.processing_ = false;
      impl.rearm();
    }
  };
  const Guard guard(*this);
  for (int i = 0; i < options_.most_steps; ++i) {
    if (!step()) return;
  }
  // Messages are handled before timers. After most_steps of them a timer has its turn, so that a flood of
  // messages delays no time-out for ever.
  (void)run_timer();
}

void Connection::Impl::wait(Milliseconds longest) {
  refuse_inside_handler("wait()");
  if (closed_) throw Error(ENOTCONN, fmt::format("the connection to {} is closed", uri_));
  pollfd waiting{fd(), POLLIN, 0};
  constexpr Milliseconds::rep most = 3'600'000;
  const auto time = longest < Milliseconds(0) ? -1 : static_cast<int>(std::min(longest.count(), most));
  if (poll(&waiting, 1, time) < 0 && errno != EINTR) {
    const int errnum = errno;
    throw Error(errnum, fmt::format("poll: {}", std::strerror(errnum)));
  }
  process();
}

bool Connection::Impl::run_until(std::optional<Clock::time_point> end) {
  refuse_in_child("run()");
  stopped_ = false;
  while (!stopped_ && !closed_) {
    auto left = Milliseconds(-1);
    if (end) {
      left = std::chrono::ceil<Milliseconds>(*end - Clock::now());
      if (left <= Milliseconds(0)) return false;
    }
    wait(left);
  }
  return true;
}

bool Connection::Impl::step() {
  // A handler may have forked.
  refuse_in_child("process()");
  if (deliver_failure() || deliver_explanation()) return true;
  if (link_) {
    if (auto message = link_->receive()) {
      dispatch(std::move(*message));
      return true;
    }
    if (losing_) {
      link_lost();
      return true;
    }
    if (const auto event = link_->next_event()) {
      on_event(*event);
      return true;
    }
  }
  if (search_) {
    if (search_->step()) {
      end_search();
      return true;
    }
    // Requests that waited may have been cancelled, or have timed out.
    std::erase_if(outgoing_, [this](const Outgoing& entry) { return find_open(entry.id) == nullptr; });
    if (outgoing_.empty() && !is_connecting_) search_.reset();
  }
  return run_timer() || flush_one();
}

bool Connection::Impl::run_timer() {
  const auto due = timers_.take_due(Clock::now());
  if (!due) return false;
  due();
  return true;
}

void Connection::Impl::rearm() {
  if (processing_ || is_inherited()) return;
  const bool now =
      !failures_.empty() || losing_ || (link_ && link_->ready(may_flush())) || (search_ && search_->ready());
  wakeup_.set_alarm(now ? Clock::time_point{} : timers_.next());
}

bool Connection::Impl::deliver_failure() {
  while (!failures_.empty()) {
    const auto id = failures_.front();
    failures_.pop_front();
    const auto request = take(id);
    if (!request) continue;
    request->handler(Response(request->message.topic, *request->failure, true));
    return true;
  }
  return false;
}

void Connection::Impl::dispatch(proto::Message message) {
  const auto tag = message.matchtag;
  if (tags_.receive(message) != proto::MatchtagState::pending) return;
  if (probe_ && probe_->tag == tag) return on_probed(message);
  const auto id = by_tag_.at(tag);
  if (auto& timer = requests_.at(id)->answer_timer) timers_.cancel(*std::exchange(timer, std::nullopt));
  const Response response = response_of(std::move(message));
  if (has_places() && put_off(id, response)) return;
  RequestPtr request;
  if (response.last()) {
    by_tag_.erase(tag);
    request = take(id);
  } else {
    request = requests_.at(id);
  }
  request->handler(response);
}

bool Connection::Impl::may_flush() const noexcept {
  if (!connected_ || losing_ || leaving_timer_ || outgoing_.empty()) return false;
  return outgoing_.front().id == 0 || tags_.size() < proto::MatchtagPool::default_limit;
}

bool Connection::Impl::flush_one() {
  if (!may_flush()) return false;
  const auto& next = outgoing_.front();
  if (next.id == 0) {
    if (!link_->send(next.message)) return false;
    outgoing_.pop_front();
    return true;
  }
  if (Request* request = find_open(next.id)) {
    request->message.matchtag = tags_.allocate();
    if (!link_->send(request->message)) {
      tags_.release(request->message.matchtag);
      return false;
    }
    request->sent = true;
    if (const auto time = request->answer_timeout; time > Milliseconds(0))
      request->answer_timer =
          timers_.add(Clock::now() + time, [this, id = next.id, time] { time_out(id, time); });
    if (!is_question(request->message.topic)) last_sent_ = std::max(last_sent_, next.id);
    by_tag_.emplace(request->message.matchtag, next.id);
  }
  outgoing_.pop_front();
  return true;
}

void Connection::Impl::flush() {
  while (flush_one()) {
  }
}

// Functions of requests

Connection::Impl::Request* Connection::Impl::find_open(RequestId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() || found->second->failure ? nullptr : found->second.get();
}

Connection::Impl::RequestPtr Connection::Impl::take(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return nullptr;
  auto request = std::move(found->second);
  requests_.erase(found);
  cancel_timers(*request);
  return request;
}

void Connection::Impl::fail(RequestId id, const Error& error) {
  Request* request = find_open(id);
  if (request == nullptr) return;
  cancel_timers(*request);
  request->failure = error;
  failures_.push_back(id);
}

void Connection::Impl::cancel_timers(Request& request) {
  for (auto* timer : {&request.timer, &request.answer_timer}) {
    if (*timer) timers_.cancel(*std::exchange(*timer, std::nullopt));
  }
}

void Connection::Impl::time_out(RequestId id, Milliseconds timeout) {
  const auto& request = requests_.at(id);
  if (request->sent) {
    // The daemon would keep what a late answer gives, such as resources.
    if (request->message.has(proto::flag::streaming)) notify(proto::make_cancel(request->message));
    tags_.cancel(request->message.matchtag);
    by_tag_.erase(request->message.matchtag);
  }
  fail(id, late_error(*request, timeout));
}

Error Connection::Impl::late_error(const Request& request, Milliseconds timeout) const {
  const auto seconds = std::chrono::duration<double>(timeout).count();
  if (!request.sent) {
    if (request.refusal) return *request.refusal;
    if (search_) return search_->why(uri_);
    // The first held request was refused, and the others wait for it.
    const auto first = held_.empty() ? requests_.end() : requests_.find(held_.front().id);
    if (hold_timer_ && first != requests_.end() && first->second->refusal) {
      const Error& refusal = *first->second->refusal;
      return {refusal.errnum(),
              fmt::format("{}: not sent to {} within {:g} s, as an earlier change was refused: {}",
                          request.message.topic, uri_, seconds, refusal.what())};
    }
  }
  return {ETIMEDOUT,
          fmt::format("{}: no answer from {} within {:g} s", request.message.topic, uri_, seconds)};
}

}  // namespace resourced::client
