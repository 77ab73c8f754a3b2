#include "daemon/service/past_topics.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/module/state.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::daemon::service {

template <class Ask>
void PastTopics::keep(const Call& call, bool is_report, const Ask& ask) {
  const std::string& who = call.sender.name;
  const auto same = [is_report](const Question& question) { return question.is_report == is_report; };
  const auto all = static_cast<std::size_t>(std::ranges::count_if(questions_, same));
  const auto own = static_cast<std::size_t>(std::ranges::count_if(
      questions_, [&](const Question& question) { return same(question) && question.who == who; }));
  if (own >= (is_report ? most_reports_of_one : most_of_one) || all >= (is_report ? most_reports : most)) {
    throw Error(EBUSY, fmt::format("{} {} of {} and {} of all clients about the past wait already", own,
                                   is_report ? "reports" : "questions", who, all));
  }
  requests_.keep(call, [&](proto::RequestKey key) {
    const std::uint64_t number = ++last_number_;
    auto is_abandoned = std::make_shared<std::atomic<bool>>(false);
    questions_.push_back({number, key, who, is_abandoned, is_report});
    requests_.become(key, streams::PastQuery{});
    ask(number, std::move(is_abandoned));
  });
}

void PastTopics::status_at(const Call& call) {
  const WallTime at = proto::topics::parse_status_at(call.object());
  // Allow for a difference between the clocks of client and daemon. The log is ahead of both if a clock was.
  constexpr Seconds skew{60};
  if (at > std::max(now(), executor_.engine().applied_at()) + skew)
    throw Error(EINVAL, "at is in the future, of which nothing is known");
  keep(call, false, [&](std::uint64_t number, IsAbandoned is_abandoned) {
    log_.ask(log::ReadPast{at, std::move(is_abandoned),
                           [at](const module::State& snapshot, log::Sequence /*last*/) {
                             return proto::topics::encode_status_at(snapshot, at);
                           },
                           [this, number](log::Past past) { answer(number, std::move(past)); }});
  });
}

void PastTopics::report(const Call& call) {
  proto::topics::ReportRequest request = proto::topics::parse_report_request(call.object());
  request.until = std::min(request.until.value_or(now()), now());
  if (request.since >= *request.until) throw Error(EINVAL, "since must be before until, and before now");
  keep(call, true, [&](std::uint64_t number, IsAbandoned is_abandoned) {
    log_.ask(log::ReadUsage{request, std::move(is_abandoned),
                            [this, number](log::Past past) { answer(number, std::move(past)); }});
  });
}

void PastTopics::release(proto::RequestKey key) {
  for (const Question& question : questions_)
    if (question.key == key) *question.is_abandoned = true;
}

void PastTopics::answer(std::uint64_t number, log::Past past) {
  const auto found = std::ranges::find(questions_, number, &Question::number);
  const Question question = std::move(*found);
  questions_.erase(found);
  if (*question.is_abandoned) return;
  if (past.failure) {
    requests_.fail(question.key, *past.failure);
  } else {
    requests_.finish(question.key, proto::make_payload(std::move(past.text)));
  }
}

}  // namespace resourced::daemon::service
