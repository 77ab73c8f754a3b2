#include "daemon/streams/journal.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "proto/message.hpp"

namespace resourced::daemon::streams {

using rset::ResourceSet;

namespace {

// Limits of a slice, which make other requests wait no longer than for another request. Messages, each of
// which takes the loop some microseconds:
constexpr std::size_t most_steps = 16;
// Bytes, as a thread has to write them to the sockets:
constexpr std::size_t most_bytes = std::size_t{256} << 10;
// Consumers that are looked at, also those without anything to send:
constexpr std::size_t most_looked_at = 1000;

bool wants_all(const log::EventFilter& filter) { return !filter.targets && !filter.since; }

std::vector<const log::LoggedEvent*> events_of(const log::HistoryPage& page) {
  std::vector<const log::LoggedEvent*> events;
  events.reserve(page.events.size());
  for (const log::LoggedEvent& event : page.events) events.push_back(&event);
  return events;
}

}  // namespace

std::optional<log::Sequence> Journal::number(log::Sequence sequence) const {
  return log_.is_numbered() ? std::optional(sequence) : std::nullopt;
}

// Returns null for no events. If a resource-define is among them, the response has R as of that event.
proto::Payload Journal::encode(const std::vector<const log::LoggedEvent*>& events) const {
  if (events.empty()) return nullptr;
  std::vector<std::string_view> lines;
  lines.reserve(events.size());
  std::string_view resources;
  for (const log::LoggedEvent* event : events) {
    lines.emplace_back(event->text);
    if (event->resources) resources = *event->resources;
  }
  return proto::make_payload(
      proto::topics::encode_journal_batch(lines, resources, number(events.back()->sequence)));
}

// Keeps the latest sentinel, as many consumers come to the end of the history at once.
const proto::Payload& Journal::sentinel(log::Sequence last) {
  if (!sentinel_ || sentinel_last_ != last) {
    sentinel_ = proto::make_payload(proto::topics::encode_journal_batch({}, {}, number(last)));
    sentinel_last_ = last;
  }
  return sentinel_;
}

Journal::Journal(Outbox& outbox, const Registry& registry, log::EventLog& log, std::size_t most,
                 std::function<void()> room)
    : outbox_(outbox),
      registry_(registry),
      log_(log),
      most_(most),
      committed_(log.last_sequence()),
      next_sequence_(log.last_sequence() + 1),
      bell_(std::make_shared<Bell>(std::move(room))) {}

Journal::~Journal() { bell_->remove(); }

log::Sequence Journal::first_in_memory() const noexcept {
  return entries_.empty() ? next_sequence_ : entries_.front().event.sequence;
}

void Journal::append(log::LoggedEvent event, text::IdSet ranks) {
  next_sequence_ = event.sequence + 1;
  if (event.audience == log::Audience::ledger) ++ledger_;
  entries_.push_back({std::move(event), std::move(ranks)});
  trim();
}

void Journal::committed(log::Sequence last) {
  committed_ = last;
  for (const ConsumerId id : std::exchange(early_, {})) {
    find_start(id, *find(id));
  }
}

void Journal::set_most(std::size_t most) {
  most_ = most;
  trim();
}

void Journal::trim() {
  while (entries_.size() > most_) entries_.pop_front();
}

std::shared_ptr<log::NamedTargets> Journal::share(std::string text, const ResourceSet& inventory,
                                                  const std::string& follower) {
  // Copies of an inventory share the list of hosts until one of them changes it, so the address tells whether
  // hosts have changed.
  const bool is_new = !inventory_ || &inventory_->nodelist() != &inventory.nodelist();
  if (is_new) inventory_ = std::make_shared<const ResourceSet>(inventory);
  std::shared_ptr<log::NamedTargets> shared = targets_.lock();
  if (shared && !is_new && text == text_) return shared;
  const std::shared_ptr<log::FilterBytes>& taken = follower_of(follower).bytes;
  const std::size_t size = log::NamedTargets::envelope + text.size();
  if (*taken + size > max_filter_bytes) {
    throw Error(EBUSY, fmt::format("the targets of the journals of {} take more than {} bytes: name ranges, "
                                   "or end a journal",
                                   follower, max_filter_bytes));
  }
  text_ = text;
  shared = std::make_shared<log::NamedTargets>(std::move(text), inventory_, taken);
  targets_ = shared;
  return shared;
}

ConsumerId Journal::add(proto::RequestKey request, proto::topics::JournalRequest wanted,
                        const ResourceSet& inventory, const std::string& follower,
                        const std::optional<JournalPosition>& position) {
  const auto known = followers_.find(follower);
  if (known != followers_.end() && known->second.journals >= most_consumers_) {
    throw Error(EBUSY, fmt::format("{} follows {} journals already", follower, known->second.journals));
  }
  if (wanted.after && !log_.is_numbered())
    throw Error(ENOSYS, "after: the events of this instance have no numbers: ask with since");
  std::shared_ptr<log::NamedTargets> named;
  if (wanted.targets) named = share(*std::move(wanted.targets), inventory, follower);
  ++follower_of(follower).journals;
  const ConsumerId id = ++last_id_;
  log::EventFilter filter;
  filter.since = wanted.since;
  filter.audiences = {wanted.allocations, wanted.own};
  filter.after = wanted.after;
  const Consumer& consumer = consumers_
                                 .emplace(id, Consumer{.request = request,
                                                       .follower = follower,
                                                       .filter = std::move(filter),
                                                       .state = Asking{},
                                                       .position = position,
                                                       .live = position && position->live,
                                                       .credit = Credit(bell_),
                                                       .stuck = std::nullopt})
                                 .first->second;
  if (named) {
    find_targets(id, named);
  } else {
    find_start(id, consumer);
  }
  return id;
}

void Journal::find_targets(ConsumerId id, const std::shared_ptr<log::NamedTargets>& named) {
  const auto take = [this, id, named] {
    Consumer* known = find(id);
    if (known == nullptr) return;
    if (named->refusal()) {
      known->state = Failed{*named->refusal()};
      return;
    }
    known->filter.targets = std::shared_ptr<const log::EventTargets>(named, &named->targets());
    find_start(id, *known);
  };
  log_.ask(log::FindTargets{named, take});
}

void Journal::find_start(ConsumerId id, const Consumer& consumer) {
  const std::optional<log::Sequence>& after = consumer.filter.after;
  if (after && *after > committed_ && *after < next_sequence_) {
    early_.insert(id);
    return;
  }
  log::EventFilter filter = consumer.filter;
  if (const auto& position = consumer.position) {
    // A consumer that was sent no event yet has no timestamp in its position, so its `since` stays. Until it
    // was told that the history is complete, it may not have come to the first event.
    if (position->last != WallTime{}) filter.since = position->last;
    filter.resumes = position->last != WallTime{} || position->live;
    filter.known = position->at_last;
  }
  const auto take = [this, id](const log::HistoryStart& start) {
    Consumer* known = find(id);
    if (known == nullptr) return;
    known->next = start.first;
    if (start.unknown_host) {
      known->state = Failed{Error(EINVAL, "unknown host: " + *start.unknown_host)};
    } else if (start.failure) {
      known->state = Failed{*start.failure};
    } else if (start.truncated) {
      // Sequence 0: the message depends on no event that has yet to be written.
      known->hold(
          proto::make_payload(proto::topics::encode_truncation(*start.truncated, number(start.first - 1))),
          0);
    } else {
      known->state = Ready{};
    }
  };
  log_.ask(log::FindStart{std::move(filter), most_, take});
}

void Journal::remove(ConsumerId consumer) {
  const auto found = consumers_.find(consumer);
  if (found == consumers_.end()) return;
  const std::string follower = std::move(found->second.follower);
  consumers_.erase(found);
  early_.erase(consumer);
  --followers_.find(follower)->second.journals;
  leave(follower);
}

log::Sequence Journal::lag() const noexcept {
  log::Sequence most = 0;
  for (const auto& [id, consumer] : consumers_) {
    // `next` is 0 while the store looks for the consumer's first event.
    if (consumer.next > 0 && consumer.next <= committed_)
      most = std::max(most, committed_ + 1 - consumer.next);
  }
  return most;
}

// Forgets a follower without journals, unless targets that count for it are still in use.
void Journal::leave(const std::string& follower) {
  const auto found = followers_.find(follower);
  if (found != followers_.end() && found->second.is_idle()) followers_.erase(found);
}

// leave() keeps a follower whose targets are still used by the reading thread or another follower, and no
// later call removes it. The number of names has no bound, as clients without credentials are named by
// address, so idle followers are removed whenever the table has doubled.
Journal::Follower& Journal::follower_of(const std::string& name) {
  constexpr std::size_t least = 64;
  if (followers_.size() >= std::max(least, 2 * followers_after_sweep_)) {
    std::erase_if(followers_, [](const auto& entry) { return entry.second.is_idle(); });
    followers_after_sweep_ = followers_.size();
  }
  return followers_[name];
}

// Returns null for a consumer that is gone: the store may answer after its end.
Journal::Consumer* Journal::find(ConsumerId id) {
  const auto found = consumers_.find(id);
  return found == consumers_.end() ? nullptr : &found->second;
}

void Journal::Consumer::hold(proto::Payload payload, log::Sequence after) {
  if (payload) {
    state = Holding{std::move(payload), after};
  } else {
    state = Ready{};
  }
}

Journal::Slice Journal::serve() {
  Slice slice;
  auto is_over = [&slice, looked_at = std::size_t{0}]() mutable {
    return ++looked_at > most_looked_at || slice.steps >= most_steps || slice.bytes >= most_bytes;
  };
  while (in_round_ || begin_round()) {
    auto next = consumers_.upper_bound(reached_);
    for (; next != consumers_.end(); ++next) {
      if (is_over()) {
        slice.more = true;
        return slice;
      }
      reached_ = next->first;
      serve(next->first, next->second, slice);
    }
    in_round_ = false;
  }
  return slice;
}

bool Journal::begin_round() {
  if (!wanted_) return false;
  wanted_ = false;
  blocked_ = false;
  in_round_ = true;
  round_end_ = committed_;
  reached_ = 0;
  return true;
}

void Journal::serve(ConsumerId id, Consumer& consumer, Slice& slice) {
  if (consumer.is<Asking>() || consumer.is<Over>()) return;
  if (const auto* failed = std::get_if<Failed>(&consumer.state)) {
    return end(consumer, Error(failed->error), slice);
  }
  // Caught up: it accepted data, so it is no longer stuck.
  if (consumer.is<Ready>() && consumer.live && consumer.next > round_end_) return consumer.stuck.reset();
  if (!consumer.credit.has_room()) return find_no_room(consumer, slice);
  if (consumer.is<Ready>()) {
    ++slice.steps;
    prepare(id, consumer);
  }
  if (consumer.is<Holding>()) send(consumer, slice);
  // A consumer that is behind continues in the next round.
  const bool is_behind = !consumer.live || consumer.next <= round_end_;
  wanted_ = wanted_ || (is_behind && consumer.is<Ready>());
}

void Journal::prepare(ConsumerId id, Consumer& consumer) {
  if (consumer.next > round_end_) {
    // The consumer may begin at an event whose commit is not reported yet: it has the events before that.
    consumer.hold(sentinel(consumer.next - 1), round_end_);
    consumer.live = true;
    return;
  }
  const log::EventFilter& filter = consumer.filter;
  const bool all = wants_all(filter);
  // End stretches at multiples of `batch`, so that consumers that are out of step can share them again.
  const log::Sequence end = std::min(round_end_, consumer.next - consumer.next % batch + batch - 1) + 1;
  const bool has_strangers = filter.targets && !filter.targets->strangers.empty();
  const bool in_memory = consumer.next >= first_in_memory() && (consumer.live || !has_strangers);
  // A stretch from the store may end before `end`: at the beginning of the memory when the store was asked.
  const Encoded* known =
      all ? find_encoded(filter.audiences, consumer.next, in_memory ? end : 0, end) : nullptr;
  if (known != nullptr) {
    consumer.next = known->next;
    consumer.hold(known->payload, consumer.next - 1);
  } else if (in_memory) {
    proto::Payload payload = from_memory(filter, consumer.next, end);
    consumer.hold(std::move(payload), consumer.next - 1);
  } else if (all) {
    ask_store_for_all(id, consumer, std::min(end, first_in_memory()) - 1);
  } else {
    ask_store(id, consumer, has_strangers ? committed_ : std::min(first_in_memory() - 1, committed_));
  }
}

void Journal::send(Consumer& consumer, Slice& slice) {
  const auto& [payload, after] = std::get<Holding>(consumer.state);
  const proto::Message* request = registry_.request(consumer.request);
  const transport::SendResult result =
      request == nullptr ? transport::SendResult::gone
                         : outbox_.offer(after, consumer.request.client,
                                         proto::make_response(*request, consumer.credit.lend(payload)));
  if (result == transport::SendResult::sent) {
    slice.bytes += payload->size();
    consumer.state = Ready{};
    consumer.stuck.reset();
  } else if (result == transport::SendResult::full) {
    blocked_ = true;
    find_no_room(consumer, slice);
  } else {
    consumer.state = Over{};
    slice.gone.push_back(consumer.request.client);
  }
}

// A consumer that the daemon throttled resumes from the store, however far behind it is. A consumer that
// accepts no data while more than journal-max events happen is ended, as its client does not read.
void Journal::find_no_room(Consumer& consumer, Slice& slice) {
  if (!consumer.live) return;
  if (!consumer.stuck) consumer.stuck = {committed_, ledger_};
  // Subtract ledger records that the consumer does not want: they put it no further behind.
  const log::Sequence unwanted = consumer.filter.audiences.allocations ? 0 : ledger_ - consumer.stuck->ledger;
  if (committed_ <= consumer.stuck->at + unwanted + most_) return;
  const proto::Message* request = registry_.request(consumer.request);
  const auto* holding = std::get_if<Holding>(&consumer.state);
  if (holding != nullptr && request != nullptr) {
    outbox_.offer_last(holding->after, consumer.request.client,
                       proto::make_response(*request, holding->payload));
  }
  end(consumer,
      Error(EOVERFLOW, "too slow: more events have happened than journal-max; ask again with since"), slice);
}

void Journal::end(Consumer& consumer, Error error, Slice& slice) {
  consumer.state = Over{};
  slice.ended.emplace_back(consumer.request, std::move(error));
}

void Journal::ask_store(ConsumerId id, Consumer& consumer, log::Sequence last) {
  consumer.state = Asking{};
  log_.ask(log::ReadPage{
      consumer.filter, consumer.next, last, batch,
      [this, id](const log::HistoryPage& page) { take_in(id, page, encode(events_of(page))); }});
}

// Asks the store once for all consumers at the same position.
void Journal::ask_store_for_all(ConsumerId id, Consumer& consumer, log::Sequence last) {
  consumer.state = Asking{};
  const log::Sequence first = consumer.next;
  const log::Audiences audiences = consumer.filter.audiences;
  const auto [asked, is_first] = asked_.try_emplace({first, audiences});
  asked->second.push_back(id);
  if (!is_first) return;
  log::EventFilter all;
  all.audiences = audiences;
  const auto take = [this, first, audiences](const log::HistoryPage& page) {
    const proto::Payload payload = encode(events_of(page));
    if (payload && !page.has_gap) remember({first, page.next, false, audiences, payload});
    const auto waiters = asked_.extract({first, audiences});
    for (const ConsumerId waiter : waiters.mapped()) take_in(waiter, page, payload);
  };
  log_.ask(log::ReadPage{std::move(all), first, last, batch, take});
}

void Journal::take_in(ConsumerId id, const log::HistoryPage& page, const proto::Payload& payload) {
  Consumer* known = find(id);
  if (known == nullptr) return;
  known->next = page.next;
  if (page.failure) {
    known->state = Failed{*page.failure};
  } else if (page.has_gap) {
    known->state =
        Failed{Error(EOVERFLOW, "too late: the next event is not kept any more (store.history); ask again")};
  } else {
    known->hold(payload, page.next - 1);
  }
}

// Returns null if nothing in the stretch passes the filter. Sets `first` to the first event that was not
// looked at: `end`, unless the response was full before.
proto::Payload Journal::from_memory(const log::EventFilter& filter, log::Sequence& first, log::Sequence end) {
  std::vector<const log::LoggedEvent*> events;
  log::PageLimit room(batch);
  const log::Sequence offset = first_in_memory();
  log::Sequence next = first;
  for (; next < end; ++next) {
    const Entry& entry = entries_[next - offset];
    if (!filter.audiences.include(entry.event.audience)) continue;
    if (filter.since && entry.event.timestamp < *filter.since) continue;
    if (filter.targets && !entry.ranks.intersects(filter.targets->ranks)) continue;
    if (!room.admit(entry.event.text.size(), entry.event.defines)) break;
    events.push_back(&entry.event);
  }
  proto::Payload payload = encode(events);
  if (wants_all(filter)) remember({first, next, next < end, filter.audiences, payload});
  first = next;
  return payload;
}

const Journal::Encoded* Journal::find_encoded(const log::Audiences& audiences, log::Sequence first,
                                              log::Sequence least, log::Sequence most) const {
  const auto* const found = std::ranges::find_if(encoded_, [&](const Encoded& encoded) {
    return encoded.next > encoded.first && encoded.first == first && encoded.audiences == audiences &&
           encoded.next <= most && (encoded.next >= least || encoded.is_full);
  });
  return found == encoded_.end() ? nullptr : found;
}

void Journal::remember(Encoded encoded) {
  last_encoded_ = (last_encoded_ + 1) % encoded_.size();
  encoded_[last_encoded_] = std::move(encoded);
}

}  // namespace resourced::daemon::streams
