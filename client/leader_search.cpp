#include "client/leader_search.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::client {
namespace {

constexpr std::string_view question = "resource.leader";
constexpr std::uint32_t question_tag = 1;

}  // namespace

LeaderSearch::LeaderSearch(Context context, const std::vector<std::string>& places,
                           proto::topics::Term former)
    : context_(context), former_(std::move(former)) {
  const BackoffLimits limits{context.options.retry_first, context.options.retry_most};
  for (std::size_t i = 0; i < places.size(); ++i)
    places_.push_back(std::make_unique<Place>(places[i], *context.links[i], limits));
  for (const auto& place : places_) connect(*place);
}

LeaderSearch::~LeaderSearch() {
  for (const auto& place : places_) {
    if (place->timer) context_.timers.cancel(*place->timer);
  }
}

bool LeaderSearch::step() {
  for (const auto& place : places_) {
    if (!place->link) continue;
    if (const auto message = place->link->receive()) {
      take_answer(*place, *message);
      return true;
    }
    if (const auto event = place->link->next_event()) {
      on_event(*place, *event);
      return true;
    }
  }
  return false;
}

bool LeaderSearch::ready() {
  bool is_ready = false;
  for (const auto& place : places_) {
    if (place->link && place->link->ready(false)) is_ready = true;
  }
  return is_ready;
}

std::optional<FoundLeader> LeaderSearch::take() { return std::exchange(found_, std::nullopt); }

bool LeaderSearch::is_over() const noexcept {
  return std::ranges::all_of(places_, [](const auto& place) { return place->has_refused; });
}

Error LeaderSearch::why(const std::string& uri) const {
  const auto refused = std::ranges::find_if(places_, [](const auto& place) { return place->has_refused; });
  if (refused != places_.end()) {
    return explain((*refused)->failure, (*refused)->uri,
                   context_.keys ? context_.options.key_file : std::string());
  }
  return {EHOSTUNREACH, fmt::format("cannot reach the daemon at {}: none of them leads the cluster", uri)};
}

void LeaderSearch::connect(Place& place) {
  place.is_asked = false;
  try {
    place.link = std::make_unique<Link>(place.links, place.uri, context_.options, context_.keys,
                                        context_.wakeup, Link::Backlog::refuse);
  } catch (const Error&) {
    return pause(place);  // no descriptors left, for example
  }
  set_timer(place, context_.options.connect_timeout, &LeaderSearch::end_attempt);
}

void LeaderSearch::ask(Place& place) {
  place.is_asked = place.link->send(proto::make_request(std::string(question), question_tag, nullptr, 0));
  if (!place.is_asked) return fail(place, ConnectFailure::timed_out);
  set_timer(place, context_.options.connect_timeout, &LeaderSearch::end_attempt);
}

void LeaderSearch::take_answer(Place& place, const proto::Message& answer) {
  if (!place.is_asked || answer.matchtag != question_tag) return;
  place.is_asked = false;
  place.has_refused = false;
  // The same for a daemon that is too busy to say.
  if (answer.errnum() == EHOSTUNREACH || answer.errnum() == EBUSY) return pause(place);
  proto::topics::Term term;
  // Other errors are of a leader whose version does not know the question.
  if (answer.errnum() == 0) {
    try {
      term = proto::topics::parse_leader(proto::parse_optional_object(answer)).value_or(std::move(term));
    } catch (const Error&) {
      return fail(place, ConnectFailure::bad_handshake);
    }
  }
  if (!proto::topics::may_follow(former_, term)) return pause(place);
  if (place.timer) context_.timers.cancel(*std::exchange(place.timer, std::nullopt));
  found_ = FoundLeader{std::move(place.link), std::move(term)};
}

void LeaderSearch::on_event(Place& place, Link::Event event) {
  switch (event) {
    case Link::Event::connected:
      return ask(place);
    case Link::Event::failed:
      return fail(place, place.link->failure());
    case Link::Event::lost:
      return fail(place, ConnectFailure::ended);
  }
}

void LeaderSearch::fail(Place& place, ConnectFailure failure) {
  place.link.reset();
  place.is_asked = false;
  place.failure = failure;
  place.has_refused = is_final(failure);
  pause(place);
}

void LeaderSearch::pause(Place& place) {
  set_timer(place, place.pause.next(context_.random), &LeaderSearch::go_on);
}

void LeaderSearch::go_on(Place& place) { place.link ? ask(place) : connect(place); }

void LeaderSearch::set_timer(Place& place, Milliseconds delay, void (LeaderSearch::*work)(Place&)) {
  if (place.timer) context_.timers.cancel(*place.timer);
  place.timer = context_.timers.add(Clock::now() + delay, [this, &place, work] {
    place.timer.reset();
    (this->*work)(place);
  });
}

}  // namespace resourced::client
