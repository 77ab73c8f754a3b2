#include "client/leader_search.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::client {
namespace {

constexpr std::string_view question = "resource.leader";
constexpr std::uint32_t question_tag = 1;
/// The time that other endpoints have to answer once one leads: running daemons answer within it, and a host
/// that is down, or a slow look-up of a name, delays no command for longer.
constexpr Milliseconds time_of_others{250};
/// Until on_no_leader is called: longer than a takeover takes.
constexpr Milliseconds time_of_silence{5000};

}  // namespace

LeaderSearch::LeaderSearch(Context context, const std::vector<std::string>& places,
                           proto::topics::Term former)
    : context_(context), former_(std::move(former)) {
  const BackoffLimits limits{context.options.retry_first, context.options.retry_most};
  for (const std::string& place : places) places_.push_back(std::make_unique<Place>(place, limits));
  for (const auto& place : places_) connect(*place);
  if (context_.options.on_no_leader) tell_later();
}

LeaderSearch::~LeaderSearch() {
  for (const auto& place : places_) {
    if (place->timer) context_.timers.cancel(*place->timer);
  }
  if (others_timer_) context_.timers.cancel(*others_timer_);
  if (tell_timer_) context_.timers.cancel(*tell_timer_);
}

bool LeaderSearch::step() {
  if (is_settled()) return true;
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
  bool is_ready = is_settled();
  for (const auto& place : places_) {
    if (place->link && place->link->ready(false)) is_ready = true;
  }
  return is_ready;
}

std::optional<FoundLeader> LeaderSearch::take() {
  if (!is_settled() || conflict()) return std::nullopt;
  Place& place = *best();
  FoundLeader found{std::move(place.link), std::move(place.claim->term)};
  place.claim.reset();
  return found;
}

bool LeaderSearch::is_over() const {
  return conflict() || std::ranges::all_of(places_, [](const auto& place) { return place->has_refused; });
}

Error LeaderSearch::why(const std::string& uri) const {
  if (auto error = conflict()) return *std::move(error);
  if (best() != nullptr) {
    const auto silent = std::ranges::find_if(places_, [](const auto& place) { return !place->is_known; });
    if (silent != places_.end()) return explain(ConnectFailure::timed_out, (*silent)->uri, {});
  }
  const auto refused = std::ranges::find_if(places_, [](const auto& place) { return place->has_refused; });
  if (refused != places_.end()) {
    return explain((*refused)->failure, (*refused)->uri,
                   context_.keys ? context_.options.key_file : std::string());
  }
  const std::string said = reasons();
  return {EHOSTUNREACH, fmt::format("cannot reach the daemon at {}: none of them leads the cluster{}{}", uri,
                                    said.empty() ? "" : ": ", said)};
}

std::string LeaderSearch::reasons() const {
  if (std::ranges::all_of(places_, [](const auto& place) { return place->reason.empty(); })) return {};
  std::string text;
  for (const auto& place : places_) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", place->uri,
                        place->reason.empty() ? "no answer" : place->reason);
  }
  return text;
}

void LeaderSearch::tell_later() {
  tell_timer_ = context_.timers.add(Clock::now() + time_of_silence, [this] {
    tell_later();
    std::string said = best() == nullptr ? reasons() : std::string();
    if (said.empty() || said == told_) return;
    told_ = std::move(said);
    context_.options.on_no_leader(told_);
  });
}

void LeaderSearch::connect(Place& place) {
  place.is_asked = false;
  try {
    place.link = std::make_unique<Link>(context_.links, place.uri, context_.options, context_.keys,
                                        context_.wakeup, context_.timers);
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
  // The daemon is too busy to answer.
  if (answer.errnum() == EBUSY) return pause(place);
  place.is_known = true;
  place.reason.clear();
  if (answer.errnum() == EHOSTUNREACH) {
    place.reason = proto::topics::standing_of(proto::response_error(answer));
    return pause(place);
  }
  Claim claim;
  // Other errors come from a leader whose version does not know the question.
  if (answer.errnum() == 0) {
    try {
      auto term = proto::topics::parse_leader(proto::parse_optional_object(answer));
      claim.is_in_no_cluster = !term;
      if (term) claim.term = *std::move(term);
    } catch (const Error&) {
      return fail(place, ConnectFailure::bad_handshake);
    }
  }
  if (!proto::topics::may_follow(former_, claim.term)) return pause(place);
  if (place.timer) context_.timers.cancel(*std::exchange(place.timer, std::nullopt));
  place.claim = std::move(claim);
  if (others_timer_ || are_others_late_) return;
  const Milliseconds time = std::min(time_of_others, context_.options.failover_timeout / 2);
  others_timer_ = context_.timers.add(Clock::now() + time, [this] {
    others_timer_.reset();
    are_others_late_ = true;
  });
}

LeaderSearch::Place* LeaderSearch::best() const {
  Place* found = nullptr;
  for (const auto& place : places_) {
    if (place->claim && (found == nullptr || place->claim->term.epoch > found->claim->term.epoch))
      found = place.get();
  }
  return found;
}

bool LeaderSearch::is_settled() const {
  const Place* leader = best();
  if (leader == nullptr) return false;
  const std::string& cluster = leader->claim->term.cluster;
  if (are_others_late_ || (!cluster.empty() && cluster == former_.cluster)) return true;
  return std::ranges::all_of(places_, [](const auto& place) { return place->is_known; }) || conflict();
}

std::optional<Error> LeaderSearch::conflict() const {
  const auto told = [](const Place& place) {
    return place.claim->is_in_no_cluster
               ? fmt::format("{} is in no cluster", place.uri)
               : fmt::format("{} leads cluster {}", place.uri, place.claim->term.cluster);
  };
  for (auto one = places_.begin(); one != places_.end(); ++one) {
    if (!(*one)->claim) continue;
    for (auto other = std::next(one); other != places_.end(); ++other) {
      if (!(*other)->claim || (*one)->uri == (*other)->uri) continue;
      if (are_of_one(*(*one)->claim, *(*other)->claim)) continue;
      return Error(EINVAL,
                   fmt::format("these daemons are not of one cluster: {}, {}: give the URIs of one cluster "
                               "alone, or make [cluster] the same in the files of both",
                               told(**one), told(**other)));
    }
  }
  return std::nullopt;
}

bool LeaderSearch::are_of_one(const Claim& one, const Claim& other) {
  const auto is_told = [](const Claim& claim) {
    return claim.is_in_no_cluster || !claim.term.cluster.empty();
  };
  if (!is_told(one) || !is_told(other)) return true;
  return !one.is_in_no_cluster && !other.is_in_no_cluster && one.term.cluster == other.term.cluster;
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
  place.claim.reset();
  place.reason.clear();
  place.is_known = true;
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
