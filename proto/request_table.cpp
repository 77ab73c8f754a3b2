// The requests that a daemon has yet to answer, see request_table.hpp.
#include "proto/request_table.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "proto/rpc.hpp"
#include "proto/topic.hpp"

namespace resourced::proto {

RequestKey RequestTable::add(ClientId client, const Message& request) {
  const RequestKey key{client, request.matchtag};
  if (request.has(flag::noresponse)) {
    throw Error(EPROTO, fmt::format("{}: a request without response cannot wait for one", request.topic));
  }
  if (requests_.contains(key)) {
    throw Error(EPROTO, fmt::format("{}: matchtag {} is in use", request.topic, request.matchtag));
  }
  if (count(client) >= max_per_client_) {
    throw Error(EBUSY, fmt::format("{}: {} requests are pending already", request.topic, max_per_client_));
  }
  Message kept = request;
  kept.payload.reset();
  kept.flags &= static_cast<std::uint8_t>(~flag::payload);
  requests_.emplace(key, std::move(kept));
  by_topic_[request.topic].insert(key);
  ++counts_[client];
  return key;
}

const Message* RequestTable::find(RequestKey key) const noexcept {
  const auto found = requests_.find(key);
  return found == requests_.end() ? nullptr : &found->second;
}

Message RequestTable::extract(Requests::iterator position) {
  const auto key = position->first;
  Message request = std::move(position->second);
  requests_.erase(position);
  const auto topic = by_topic_.find(request.topic);
  topic->second.erase(key);
  if (topic->second.empty()) {
    by_topic_.erase(topic);
  }
  const auto counter = counts_.find(key.client);
  if (--counter->second == 0) {
    counts_.erase(counter);
  }
  return request;
}

std::optional<Message> RequestTable::take(RequestKey key) {
  const auto found = requests_.find(key);
  if (found == requests_.end()) {
    return std::nullopt;
  }
  return extract(found);
}

std::optional<Message> RequestTable::take_cancelled(ClientId client, const Message& cancel) {
  const auto topic = cancelled_topic(cancel.topic);
  if (!topic) {
    throw Error(EPROTO, fmt::format("{}: not a cancellation", cancel.topic));
  }
  const auto found = requests_.find({client, parse_cancel(cancel)});
  if (found == requests_.end() || found->second.topic != *topic) {
    return std::nullopt;
  }
  return extract(found);
}

std::vector<Message> RequestTable::take_client(ClientId client, std::string_view service) {
  std::vector<Message> taken;
  auto position = requests_.lower_bound({client, 0});
  while (position != requests_.end() && position->first.client == client) {
    const auto current = position++;
    if (service.empty() || split_topic(current->second.topic).service == service) {
      taken.push_back(extract(current));
    }
  }
  return taken;
}

std::vector<RequestKey> RequestTable::with_topic(std::string_view topic) const {
  const auto found = by_topic_.find(topic);
  if (found == by_topic_.end()) {
    return {};
  }
  return {found->second.begin(), found->second.end()};
}

std::size_t RequestTable::count(ClientId client) const noexcept {
  const auto found = counts_.find(client);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace resourced::proto
