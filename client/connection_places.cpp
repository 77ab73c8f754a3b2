// A connection with several places, those of the daemons of a cluster: which of them gets the requests, and
// which requests are sent again. See connection_impl.hpp.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "client/connection_impl.hpp"
#include "client/repeatable.hpp"

namespace resourced::client {

void Connection::Impl::connect_places() {
  struct Wanted {
    bool& is_wanted;
    explicit Wanted(bool& flag) : is_wanted(flag) { is_wanted = true; }
    ~Wanted() { is_wanted = false; }
  };
  const Wanted wanted(is_connecting_);
  const auto end = Clock::now() + options_.failover_timeout;
  const auto failed_before = failed_attempts_;
  while (!connected_) {
    if (failed_attempts_ != failed_before) throw *refused_;
    if (!search_ && !retry_timer_) start_search();
    const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now());
    if (left <= Milliseconds(0)) throw search_ ? search_->why(uri_) : lost_error();
    wait(left);
  }
}

void Connection::Impl::start_search() {
  search_ = std::make_unique<LeaderSearch>(
      LeaderSearch::Context{*context_, options_, keys_, wakeup_, timers_}, places_, term_);
  rearm();
}

void Connection::Impl::end_search() {
  if (auto found = search_->take()) {
    search_.reset();
    link_ = std::move(found->link);
    (void)follows(std::move(found->term));
    connected_ = true;
    retry_.reset();
    return;
  }
  if (!search_->is_over()) return;
  refused_ = search_->why(uri_);
  search_.reset();
  ++failed_attempts_;
  for (const Outgoing& entry : std::exchange(outgoing_, {})) fail(entry.id, *refused_);
}

bool Connection::Impl::follows(proto::topics::Term term) {
  if (!proto::topics::may_follow(term_, term)) {
    losing_ = link_ != nullptr;
    rearm();
    return false;
  }
  if (term.cluster.empty()) term.cluster = std::move(term_.cluster);
  term_ = std::move(term);
  return true;
}

bool Connection::Impl::put_off(RequestId id, const Response& response) {
  if (response.ok()) {
    hold_.reset();
    return false;
  }
  Request& request = *requests_.at(id);
  const int errnum = response.error().errnum();
  const std::string& topic = request.message.topic;
  // EHOSTUNREACH of resource.wait is about its targets.
  const bool is_of_standby = errnum == EHOSTUNREACH && topic != "resource.wait";
  if (is_of_standby && request.message.has(proto::flag::streaming)) {
    by_tag_.erase(request.message.matchtag);
    fail(id, lost_error());
    losing_ = true;
    return true;
  }
  if (!is_of_standby && !(errnum == EAGAIN && is_change(topic))) return false;
  if (!is_question(topic) && id != last_sent_) return false;
  const auto now = Clock::now();
  if (!request.refusal) request.refused = now;
  if (!request.timer && now - request.refused >= options_.failover_timeout) return false;
  request.refusal = response.error();
  by_tag_.erase(request.message.matchtag);
  send_again({id});
  if (is_of_standby) {
    losing_ = true;
  } else {
    hold_timer_ = timers_.add(now + hold_.next(), [this] { hold_timer_.reset(); });
  }
  return true;
}

void Connection::Impl::send_again(const std::vector<RequestId>& ids) {
  for (const RequestId id : ids) {
    requests_.at(id)->sent = false;
    outgoing_.push_back({id, {}});
  }
  std::ranges::stable_sort(outgoing_, {}, [](const Outgoing& entry) { return entry.id; });
}

}  // namespace resourced::client
