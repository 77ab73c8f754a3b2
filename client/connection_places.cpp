// A connection with several endpoints, those of the daemons of a cluster: the choice of the endpoint that
// gets the requests, and of the requests that are sent again. See connection_impl.hpp.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "client/connection_impl.hpp"
#include "client/repeatable.hpp"

namespace resourced::client {
namespace {

/// How often a question is sent again: one that ends the daemon must not go through the whole cluster.
constexpr unsigned most_losses = 1;
constexpr std::string_view probe_topic = "resource.leader";

}  // namespace

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
      LeaderSearch::Context{*context_, options_, keys_, wakeup_, timers_, random_}, places_, term_);
  rearm();
}

void Connection::Impl::end_search() {
  if (auto found = search_->take()) {
    search_.reset();
    link_ = std::move(found->link);
    (void)follows(std::move(found->term));
    connected_ = true;
    retry_.reset();
    if (!link_->has_heartbeats()) probe_link();
    return;
  }
  if (!search_->is_over()) return;
  refused_ = search_->why(uri_);
  search_.reset();
  ++failed_attempts_;
  for (const Outgoing& entry : std::exchange(outgoing_, {})) fail(entry.id, *refused_);
}

bool Connection::Impl::follows(proto::topics::Term term) {
  refuse_in_child("follows()");
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
  Request& request = *requests_.at(id);
  const std::string& topic = request.message.topic;
  if (response.ok()) {
    if (is_change(topic)) hold_.reset();
    return false;
  }
  const Error& error = response.error();
  const bool has_ended = is_shut_down(error);
  const bool does_not_lead = is_of_standby(topic, error);
  if (has_ended) leave();
  if (does_not_lead) losing_ = true;
  if ((has_ended || does_not_lead) && request.message.has(proto::flag::streaming)) {
    by_tag_.erase(request.message.matchtag);
    fail(id, lost_error());
    return true;
  }
  if (has_ended && is_question(topic)) {
    if (request.losses >= most_losses) return false;
    ++request.losses;
    by_tag_.erase(request.message.matchtag);
    send_again({id});
    return true;
  }
  const bool cannot_commit = error.errnum() == EAGAIN && is_change(topic);
  if (!does_not_lead && !cannot_commit) return false;
  if (!send_again_after_refusal(id, request, error)) return false;
  if (cannot_commit) hold();
  return true;
}

bool Connection::Impl::send_again_after_refusal(RequestId id, Request& request, const Error& refusal) {
  if (!is_question(request.message.topic) && id != last_sent_) return false;
  const auto now = Clock::now();
  if (!request.refusal) request.refused = now;
  if (!request.timer && now - request.refused >= options_.failover_timeout) return false;
  request.refusal = refusal;
  by_tag_.erase(request.message.matchtag);
  send_again({id});
  return true;
}

void Connection::Impl::leave() {
  if (leaving_timer_) return;
  leaving_timer_ = timers_.add(Clock::now() + options_.connect_timeout, [this] {
    leaving_timer_.reset();
    losing_ = link_ != nullptr;
  });
}

void Connection::Impl::hold() {
  hold_timer_ = timers_.add(Clock::now() + hold_.next(random_), [this] {
    hold_timer_.reset();
    end_hold();
  });
  const auto waits = [this](const Outgoing& entry) {
    const Request* request = find_open(entry.id);
    return request != nullptr && !is_question(request->message.topic);
  };
  std::ranges::copy_if(outgoing_, std::back_inserter(held_), waits);
  std::erase_if(outgoing_, waits);
}

void Connection::Impl::end_hold() {
  if (hold_timer_) timers_.cancel(*std::exchange(hold_timer_, std::nullopt));
  std::ranges::move(std::exchange(held_, {}), std::back_inserter(outgoing_));
  std::ranges::stable_sort(outgoing_, {}, [](const Outgoing& entry) { return entry.id; });
}

void Connection::Impl::send_again(const std::vector<RequestId>& ids) {
  for (const RequestId id : ids) {
    Request& request = *requests_.at(id);
    request.sent = false;
    if (request.answer_timer) timers_.cancel(*std::exchange(request.answer_timer, std::nullopt));
    outgoing_.push_back({id, {}});
  }
  std::ranges::stable_sort(outgoing_, {}, [](const Outgoing& entry) { return entry.id; });
}

void Connection::Impl::link_lost() {
  drop_link();
  std::deque<Outgoing> waiting;
  for (auto& entry : std::exchange(outgoing_, {})) {
    const Request* request = find_open(entry.id);
    if (request != nullptr && request->wait_for_daemon) waiting.push_back(std::move(entry));
  }
  outgoing_ = std::move(waiting);
  // Collect ended requests in the order in which they were made, except those that remain in outgoing_.
  std::set<RequestId> ended;
  std::vector<RequestId> again;
  for (const auto& [id, request] : requests_) {
    if (request->failure || (!request->sent && request->wait_for_daemon)) continue;
    if (has_places() && request->sent && is_question(request->message.topic) &&
        request->losses < most_losses) {
      ++request->losses;
      again.push_back(id);
    } else {
      ended.insert(id);
    }
  }
  for (const auto id : ended) fail(id, lost_error(requests_.at(id)->message.topic));
  send_again(again);
  if (!outgoing_.empty()) retry_later();
}

void Connection::Impl::look_at_link() {
  if (!link_ || losing_) return;
  if (const auto event = link_->next_event()) on_event(*event);
}

void Connection::Impl::probe_link() {
  const auto now = Clock::now();
  if (!probe_ && tags_.size() < proto::MatchtagPool::default_limit) {
    const auto tag = tags_.allocate();
    if (link_->send(proto::make_request(std::string(probe_topic), tag, nullptr, 0))) {
      probe_ = Probe{tag, now};
    } else {
      tags_.release(tag);
    }
  } else if (probe_ && now - probe_->sent >= *options_.heartbeat_timeout) {
    losing_ = true;
    return;
  }
  probe_timer_ = timers_.add(now + *options_.heartbeat_interval, [this] { probe_link(); });
}

void Connection::Impl::on_probed(const proto::Message& answer) {
  probe_.reset();
  if (answer.errnum() == EHOSTUNREACH) losing_ = true;
}

}  // namespace resourced::client
