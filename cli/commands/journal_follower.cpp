#include "cli/commands/journal_follower.hpp"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "proto/topics/leader.hpp"

namespace resourced::cli::commands {

namespace {

constexpr client::BackoffLimits pauses{client::Milliseconds(20), client::Milliseconds(1000)};

/// Whether the journal may continue: the daemon has ended, or the client fell behind.
bool is_interruption(const client::Response& response) {
  switch (response.error().errnum()) {
    case ECONNRESET:
      return response.local();
    case ENODATA:
    case ECANCELED:
    case EOVERFLOW:
    case EAGAIN:
      return !response.local();
    case EHOSTUNREACH:
      // The daemon is a standby that does not have the last event yet.
      return proto::topics::is_of_standby(response.error());
    default:
      return false;
  }
}

}  // namespace

JournalFollower::JournalFollower(client::Connection& connection, bool reconnects, Callbacks callbacks)
    : connection_(connection), reconnects_(reconnects), callbacks_(std::move(callbacks)), pause_(pauses) {}

JournalFollower::~JournalFollower() { end(); }

void JournalFollower::end() {
  if (timer_) connection_.cancel_timer(*std::exchange(timer_, std::nullopt));
  if (!request_) return;
  const auto request = *std::exchange(request_, std::nullopt);
  connection_.cancel(request);
  connection_.forget(request);
}

void JournalFollower::ask(const proto::topics::JournalRequest& request) {
  end();
  wanted_ = request;
  has_last_ = request.after.has_value();
  has_begun_ = false;
  send(false);
}

void JournalFollower::send(bool waits) {
  client::SendOptions options;
  options.streaming = true;
  options.wait_for_daemon = waits;
  request_ = connection_.send(
      "resource.journal", proto::topics::encode_journal(wanted_),
      [this](const client::Response& response) { receive(response); }, options);
}

void JournalFollower::receive(const client::Response& response) {
  if (response.ok()) {
    const nlohmann::json payload = response.payload();
    const nlohmann::json* events = proto::topics::find_journal_events(payload);
    if (events == nullptr) throw Error(EPROTO, "the daemon sent a journal response without events");
    const auto last = proto::topics::find_journal_last(payload);
    pause_.reset();
    has_begun_ = true;
    if (last) {
      wanted_.after = last;
      has_last_ = true;
    }
    if (std::exchange(is_lost_, false) && callbacks_.changed) callbacks_.changed(std::nullopt);
    return callbacks_.events(*events, last);
  }
  request_.reset();
  // The leader of a cluster may end before it has answered.
  const bool can_go_on = has_last_ || (connection_.has_places() && !has_begun_);
  if (!reconnects_ || !can_go_on || !is_interruption(response)) return callbacks_.ended(response);
  if (!std::exchange(is_lost_, true) && callbacks_.changed) callbacks_.changed(response.error());
  timer_ = connection_.after(pause_.next(), [this] {
    timer_.reset();
    send(true);
  });
}

}  // namespace resourced::cli::commands
