#include "daemon/journal.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "proto/json_text.hpp"
#include "proto/rpc.hpp"

namespace resourced::daemon {
namespace {

const proto::Payload& sentinel() {
  static const proto::Payload payload = proto::make_payload(std::string(R"({"events":[]})"));
  return payload;
}

proto::Payload truncate_event(double timestamp) {
  std::string text = R"({"events":[{"timestamp":)";
  proto::append_number(text, timestamp);
  text += R"(,"name":"truncate"}]})";
  return proto::make_payload(std::move(text));
}

}  // namespace

Journal::Journal(Clients& clients, const proto::RequestTable& requests, Store& store, const Module& module,
                 std::size_t most)
    : clients_(clients),
      requests_(requests),
      store_(store),
      module_(module),
      most_(most),
      committed_(store.last_sequence()),
      next_sequence_(store.last_sequence() + 1) {}

Sequence Journal::first_in_memory() const noexcept {
  return entries_.empty() ? next_sequence_ : entries_.front().event.sequence;
}

void Journal::append(LoggedEvent event, IdSet ranks) {
  next_sequence_ = event.sequence + 1;
  entries_.push_back({std::move(event), std::move(ranks)});
  trim();
}

void Journal::set_most(std::size_t most) {
  most_ = most;
  trim();
}

void Journal::trim() {
  while (entries_.size() > most_) entries_.pop_front();
}

void Journal::add(proto::RequestKey request, EventFilter filter, const std::string& follower) {
  std::size_t& followed = followed_[follower];
  if (followed >= most_consumers_)
    throw Error(EBUSY, fmt::format("{} follows {} journals already", follower, followed));
  ++followed;
  const std::uint64_t id = ++last_id_;
  Consumer& consumer = consumers_[request];
  consumer = Consumer{id, follower, std::move(filter), 0, true, false, nullptr, std::nullopt};
  store_.find_start(consumer.filter, most_, [this, request, id](const HistoryStart& start) {
    Consumer* known = find(request, id);
    if (known == nullptr) return;
    known->next = start.first;
    known->waiting = false;
    known->unknown_host = start.unknown_host;
    if (start.truncated) known->held = truncate_event(*start.truncated);
  });
}

void Journal::remove(proto::RequestKey request) {
  const auto found = consumers_.find(request);
  if (found == consumers_.end()) return;
  const auto followed = followed_.find(found->second.follower);
  if (--followed->second == 0) followed_.erase(followed);
  consumers_.erase(found);
}

// An answer of the store may come after its consumer, or for a later one of the same request key.
Journal::Consumer* Journal::find(proto::RequestKey key, std::uint64_t id) {
  const auto found = consumers_.find(key);
  return found == consumers_.end() || found->second.id != id ? nullptr : &found->second;
}

Journal::Casualties Journal::flush() {
  Casualties casualties;
  blocked_ = false;
  for (auto& [key, consumer] : consumers_) {
    switch (advance(key, consumer)) {
      case Progress::gone:
        casualties.gone.push_back(key.client);
        break;
      case Progress::overrun:
        casualties.ended.emplace_back(
            key,
            Error(EOVERFLOW, "too slow: more events have happened than journal-max; ask again with since"));
        break;
      case Progress::misled:
        casualties.ended.emplace_back(key, Error(EINVAL, "unknown host: " + *consumer.unknown_host));
        break;
      case Progress::full:
        blocked_ = true;
        break;
      case Progress::idle:
        break;
    }
  }
  return casualties;
}

Journal::Progress Journal::advance(proto::RequestKey key, Consumer& consumer) {
  while (!consumer.waiting) {
    if (consumer.unknown_host) return Progress::misled;
    if (consumer.held) {
      const SendResult result = send(key, consumer.held);
      if (result != SendResult::sent) return result == SendResult::full ? Progress::full : Progress::gone;
      consumer.held.reset();
    }
    if (consumer.next > committed_) {
      if (consumer.live) return Progress::idle;
      consumer.held = sentinel();
      consumer.live = true;
    } else if (consumer.next >= first_in_memory() && (consumer.live || consumer.filter.strangers.empty())) {
      consumer.held = from_memory(consumer);
    } else if (consumer.live) {
      return Progress::overrun;
    } else {
      ask_store(key, consumer);
    }
  }
  return Progress::idle;
}

void Journal::ask_store(proto::RequestKey key, Consumer& consumer) {
  consumer.waiting = true;
  const Sequence last =
      consumer.filter.strangers.empty() ? std::min(first_in_memory() - 1, committed_) : committed_;
  store_.read_page(consumer.filter, consumer.next, last, batch,
                   [this, key, id = consumer.id](const HistoryPage& page) {
                     Consumer* known = find(key, id);
                     if (known == nullptr) return;
                     known->waiting = false;
                     known->next = page.next;
                     std::vector<const LoggedEvent*> events;
                     for (const LoggedEvent& event : page.events) events.push_back(&event);
                     if (!events.empty()) known->held = encode(events);
                   });
}

// Null if nothing in the stretch passes the filter.
proto::Payload Journal::from_memory(Consumer& consumer) {
  const Sequence first = consumer.next;
  const Sequence end = std::min(committed_ + 1, first + batch);
  consumer.next = end;
  const EventFilter& filter = consumer.filter;
  const bool plain = !filter.hosts && !filter.since;
  const bool known = encoded_.first == first && encoded_.next == end &&
                     encoded_.inventory_version == module_.inventory_version();
  if (plain && known) return encoded_.payload;

  std::vector<const LoggedEvent*> events;
  const Sequence offset = first_in_memory();
  for (Sequence sequence = first; sequence < end; ++sequence) {
    const Entry& entry = entries_[sequence - offset];
    if (filter.since && entry.event.timestamp < *filter.since) continue;
    if (filter.hosts && !entry.ranks.intersects(filter.ranks)) continue;
    events.push_back(&entry.event);
  }
  if (events.empty()) return nullptr;
  proto::Payload payload = encode(events);
  if (plain) encoded_ = {first, end, module_.inventory_version(), payload};
  return payload;
}

proto::Payload Journal::encode(const std::vector<const LoggedEvent*>& events) {
  std::string text = R"({"events":[)";
  bool defines = false;
  for (const LoggedEvent* event : events) {
    if (text.back() != '[') text += ',';
    text += event->text;
    defines = defines || event->defines;
  }
  text += ']';
  if (defines) {
    text += R"(,"R":)";
    text += module_.inventory().encode();
  }
  text += '}';
  return proto::make_payload(std::move(text));
}

SendResult Journal::send(proto::RequestKey key, const proto::Payload& payload) {
  const proto::Message* request = requests_.find(key);
  if (request == nullptr) return SendResult::gone;
  return clients_.try_send(key.client, proto::make_response(*request, payload));
}

}  // namespace resourced::daemon
