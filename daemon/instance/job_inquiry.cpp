#include "daemon/instance/job_inquiry.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/instance/beginning.hpp"
#include "daemon/instance/channel_transport.hpp"

namespace resourced::daemon::instance {

using proto::Message;
using rset::ResourceSet;

void JobInquiry::ask(const Message& request) {
  constexpr std::size_t most_waiting = 4096;
  if (waiting_.size() >= most_waiting)
    throw Error(EBUSY, fmt::format("{} requests wait for the job manager already", most_waiting));
  waiting_.push_back(request);
  // It has none by the protocol, and what it has nevertheless could be large.
  waiting_.back().payload = nullptr;
  waiting_.back().flags &= static_cast<std::uint8_t>(~proto::flag::payload);
  if (std::exchange(is_asking_, true)) return;
  broker_.call("job-manager.resource-status", nullptr, Broker::Channel::leader(),
               [this](const Message& answer) { take(answer); });
}

// The transport gets these requests only when the job manager has answered. It would keep a client for ever
// whose end came before that.
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
  try {
    if (answer.errnum() == ENOSYS) {
      callbacks_.allocated(std::nullopt);
    } else if (answer.errnum() != 0) {
      throw proto::response_error(answer);
    } else {
      callbacks_.allocated(ResourceSet::from_json(proto::parse_object(answer, most_values).at("allocated")));
    }
  } catch (const std::exception& error) {
    failure_ = Error(EINVAL, fmt::format("job-manager.resource-status request failed: {}", error.what()));
  }
  std::ranges::move(waiting_, std::back_inserter(answered_));
  waiting_.clear();
  answer_some();
}

// Some at a time, so that other requests have their turn.
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
