#include "daemon/instance/job_inquiry.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/instance/beginning.hpp"
#include "daemon/instance/channel_transport.hpp"

namespace resourced::daemon::instance {

using proto::Message;
using rset::ResourceSet;

namespace {

constexpr std::string_view not_loaded = "no job manager is loaded";

}  // namespace

void JobInquiry::ask(const Message& request) {
  constexpr std::size_t most_waiting = 4096;
  if (waiting_.size() >= most_waiting)
    throw Error(EBUSY, fmt::format("{} requests wait for the job manager already", most_waiting));
  waiting_.push_back(request);
  // Drop the payload: there is none by the protocol, and an unexpected one could be large.
  waiting_.back().payload = nullptr;
  waiting_.back().flags &= static_cast<std::uint8_t>(~proto::flag::payload);
  if (!is_asking_) inquire();
}

void JobInquiry::inquire() {
  is_asking_ = true;
  asked_for_ = settled_;
  broker_.call("job-manager.resource-status", nullptr, Broker::Channel::leader(),
               [this](const Message& answer) { take(answer); });
}

void JobInquiry::ask_anew() {
  if (is_asking_) {
    must_ask_again_ = true;
  } else {
    inquire();
  }
}

std::uint64_t JobInquiry::follow() {
  if (!events_) open();
  ++followed_;
  if (!is_settling_) settle();
  return followed_;
}

// Waits for an answer of the scheduler. A scheduler that has not read yet that a target is drained may still
// give it to a job. Its answer to any later request reaches the job manager after that job.
void JobInquiry::settle() {
  is_settling_ = true;
  broker_.call("sched.ping", nullptr, Broker::Channel::leader(),
               [this, number = followed_](const Message& /*from a scheduler, or that there is none*/) {
                 is_settling_ = false;
                 settled_ = number;
                 ask_anew();
                 if (followed_ > number) settle();
               });
}

void JobInquiry::stop() {
  must_ask_again_ = false;
  close();
}

// Opens the streams. After its job has ended, a node may be cleaned up for a while before it is free. No
// event of the job shows the end of that, but the job manager informs the scheduler. Without a scheduler or
// the trace only the events are left. The events also show the end of the job manager.
void JobInquiry::open() {
  events_ =
      broker_.stream("job-manager.events-journal", {{"full", false}, {"allow", {{"free", 1}}}},
                     Broker::Channel::leader(), [this](const Message& answer) { on_free_event(answer); });
  freed_ = broker_.stream("module.trace",
                          {{"typemask", static_cast<int>(proto::MessageType::request)},
                           {"topic_glob", "sched.free"},
                           {"names", {"job-manager"}},
                           {"full", true}},
                          Broker::Channel::leader(), [this](const Message& answer) { on_freed(answer); });
}

void JobInquiry::close() {
  if (const auto events = std::exchange(events_, std::nullopt)) {
    broker_.forget(*events);
    broker_.tell("job-manager.events-journal-cancel", {{"matchtag", *events}}, Broker::Channel::leader());
  }
  if (const auto freed = std::exchange(freed_, std::nullopt)) {
    broker_.forget(*freed);
    // Disconnect: a trace cannot be cancelled, and this module has no other request at this service.
    broker_.tell("module.disconnect", nullptr, Broker::Channel::leader());
  }
}

void JobInquiry::on_free_event(const Message& answer) {
  if (answer.errnum() == 0) {
    if (!freed_ || !callbacks_.has_scheduler()) ask_anew();
    return;
  }
  // The job manager has ended, or does not run.
  events_.reset();
  close();
  callbacks_.tell({settled_, std::nullopt, std::string(not_loaded)});
}

void JobInquiry::on_freed(const Message& answer) {
  if (answer.errnum() != 0) {
    freed_.reset();
    callbacks_.warn(fmt::format("module.trace: {}: resource.wait does not see the end of housekeeping",
                                proto::response_error(answer).what()));
    // Free events were ignored while the trace was open, so ask again.
    ask_anew();
    return;
  }
  bool is_awaited = true;
  try {
    const auto traced = proto::parse_object(answer, most_values);
    is_awaited = callbacks_.awaits(ResourceSet::from_json(traced.at("payload").at("R")).ranks());
  } catch (const std::exception&) {
    // The trace may have left a part out, which could be the awaited one.
  }
  if (is_awaited) ask_anew();
}

// Forgets the requests of a client. The transport gets them only when the job manager has answered, and would
// keep a client for ever that has ended before that.
void JobInquiry::forget(const Message& disconnect) {
  const auto has_left = [&](const Message& request) {
    return ChannelTransport::may_disconnect(disconnect, request);
  };
  std::erase_if(waiting_, has_left);
  std::erase_if(answered_, has_left);
}

void JobInquiry::take(const Message& answer) {
  is_asking_ = false;
  failure_.reset();
  service::JobAnswer told{asked_for_, std::nullopt, {}};
  try {
    if (answer.errnum() == ENOSYS) {
      told.why = not_loaded;
      callbacks_.allocated(std::nullopt);
    } else if (answer.errnum() != 0) {
      throw proto::response_error(answer);
    } else {
      auto allocated = ResourceSet::from_json(proto::parse_object(answer, most_values).at("allocated"));
      told.allocated = allocated.ranks();
      callbacks_.allocated(std::move(allocated));
    }
  } catch (const std::exception& error) {
    failure_ = Error(EINVAL, fmt::format("job-manager.resource-status request failed: {}", error.what()));
    told.why = failure_->what();
  }
  callbacks_.tell(std::move(told));
  if (std::exchange(must_ask_again_, false)) inquire();
  std::ranges::move(waiting_, std::back_inserter(answered_));
  waiting_.clear();
  answer_some();
}

// Answers some requests at a time, so that others have their turn.
void JobInquiry::answer_some() {
  constexpr std::size_t most_answers = 64;
  for (std::size_t i = 0; i < most_answers && !answered_.empty(); ++i) {
    const Message request = std::move(answered_.front());
    answered_.pop_front();
    if (failure_) {
      callbacks_.refuse(request, *failure_);
    } else {
      callbacks_.answer(request);
    }
  }
  if (!answered_.empty()) answer_more_later();
}

void JobInquiry::answer_more_later() {
  callbacks_.post([this, alive = std::weak_ptr(is_alive_)] {
    if (!alive.expired()) answer_some();
  });
}

void JobInquiry::end() {
  waiting_.clear();
  answered_.clear();
  is_alive_.reset();
  callbacks_.allocated(std::nullopt);
}

}  // namespace resourced::daemon::instance
