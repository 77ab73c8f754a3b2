#include "daemon/instance/parent_follower.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "os/log.hpp"

namespace resourced::daemon::instance {

using module::Event;

namespace {

/// Pauses between attempts after a failure.
constexpr client::BackoffLimits pauses{client::Milliseconds(100), client::Milliseconds(10000)};
/// Warn once after this time without an answer.
constexpr Seconds patience{10};
constexpr std::size_t most_held = 100000;
/// Maximum size of the parent's texts in log lines, in bytes.
constexpr std::size_t longest_text = 300;

std::optional<SteadyTime> earlier(std::optional<SteadyTime> a, std::optional<SteadyTime> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

ParentFollower::ParentFollower(client::Connection& connection, nodes::ParentMirror& mirror, SteadyTime now,
                               Tell tell)
    : connection_(connection), mirror_(mirror), tell_(std::move(tell)), now_(now), pause_(pauses) {
  mirror_.begin();
  miss_at_ = now_ + patience;
  ask();
}

ParentFollower::~ParentFollower() { drop_requests(); }

void ParentFollower::process(SteadyTime now) {
  now_ = now;
  try {
    connection_.process();
  } catch (const Error& error) {
    fail(error.what());
  }
}

void ParentFollower::tick(SteadyTime now) {
  now_ = now;
  if (ask_at_ && *ask_at_ <= now_) {
    ask_at_.reset();
    ask();
  }
  if (miss_at_ && *miss_at_ <= now_) {
    miss_at_.reset();
    os::log_warning(
        "the enclosing instance at {} has not answered yet; its hosts keep their last known states",
        connection_.uri());
  }
  tell();
}

std::optional<SteadyTime> ParentFollower::next_deadline() const {
  return earlier(earlier(ask_at_, miss_at_), mirror_.next_deadline());
}

void ParentFollower::ask() {
  client::SendOptions options;
  options.streaming = true;
  options.wait_for_daemon = true;
  try {
    journal_ = send("resource.journal", &ParentFollower::on_batch, options);
  } catch (const Error& error) {
    fail(error.what());
  }
}

ParentFollower::RequestId ParentFollower::send(std::string_view topic, Handler handler,
                                               const client::SendOptions& options) {
  const auto answer = [this, handler](const client::Response& response) { (this->*handler)(response); };
  return connection_.send(topic, nlohmann::json::object(), answer, options);
}

void ParentFollower::on_batch(const client::Response& response) {
  if (response.last()) journal_.reset();
  if (!response.ok()) {
    fail(response.error().what());
    return;
  }
  try {
    take_in(proto::topics::parse_journal_batch(response.payload()));
  } catch (const Error& error) {
    fail(error.what());
    return;
  }
  if (response.last()) fail("resource.journal: the stream has ended");
}

void ParentFollower::take_in(const proto::topics::JournalBatch& batch) {
  if (batch.unreadable > 0) {
    if (const auto before = defects_.admit()) {
      os::log_warning("ignored {} events of the enclosing instance: {}{}", batch.unreadable,
                      std::string_view(batch.defect).substr(0, longest_text), *before);
    }
  }
  if (synced()) {
    for (const Event& event : batch.events) mirror_.apply(event);
    tell();
  } else if (status_) {
    if (held_.size() + batch.events.size() > most_held) throw Error(EPROTO, "resource.status: no answer");
    held_.insert(held_.end(), batch.events.begin(), batch.events.end());
  } else {
    for (const Event& event : batch.events) mirror_.apply(event);
    if (batch.sentinel) status_ = send("resource.status", &ParentFollower::on_status, {});
  }
}

void ParentFollower::on_status(const client::Response& response) {
  status_.reset();
  if (!response.ok()) {
    fail(response.error().what());
    return;
  }
  try {
    proto::topics::ParentStatus status = proto::topics::parse_parent_status(response.payload());
    auto inventory = std::make_shared<const rset::ResourceSet>(std::move(status.inventory));
    mirror_.apply(
        {{}, module::DefineEvent{module::DefineMethod::configuration, std::move(inventory), {}, {}}});
    mirror_.assume(status.drained, status.offline, status.torpid);
  } catch (const Error& error) {
    fail(error.what());
    return;
  }
  // Apply the held events. The status may already include some of them, which is harmless: the last event of
  // a target decides.
  for (const Event& event : std::exchange(held_, {})) mirror_.apply(event);
  history_is_through();
}

void ParentFollower::history_is_through() {
  if (!mirror_.acquainted()) {
    fail("it has none of the hosts of this instance's R: it is not the parent");
    return;
  }
  mirror_.synced(now_);
  synced_at_ = now_;
  miss_at_.reset();
  last_failure_.clear();
  if (const auto before = successes_.admit()) {
    os::log_info("following the enclosing instance at {}{}", connection_.uri(), *before);
  }
  tell();
}

void ParentFollower::tell() {
  if (const auto change = mirror_.take(now_)) tell_(*change);
}

void ParentFollower::fail(std::string_view why) {
  drop_requests();
  held_.clear();
  mirror_.begin();
  if (synced_at_) pause_.held(std::chrono::duration_cast<client::Milliseconds>(now_ - *synced_at_));
  synced_at_.reset();
  ask_at_ = now_ + pause_.next();

  const std::string_view text = why.substr(0, longest_text);
  if (text == last_failure_) return;
  if (const auto before = failures_.admit()) {
    last_failure_ = text;
    os::log_warning("not following the enclosing instance at {}, trying again: {}{}", connection_.uri(), text,
                    *before);
  }
}

void ParentFollower::drop_requests() {
  for (auto* request : {&journal_, &status_}) {
    if (!*request) continue;
    connection_.cancel(**request);
    connection_.forget(**request);
    request->reset();
  }
}

}  // namespace resourced::daemon::instance
