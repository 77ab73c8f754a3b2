#include "daemon/streams/registry.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::streams {

using proto::Message;
using proto::RequestKey;

RequestKey Registry::add(proto::ClientId client, const Message& request) {
  const RequestKey key{client, request.matchtag};
  if (request.has(proto::flag::noresponse)) {
    throw Error(EPROTO, fmt::format("{}: the request must not have the noresponse flag", request.topic));
  }
  require_unused(client, request);
  Message kept = request;
  kept.payload.reset();
  kept.flags &= static_cast<std::uint8_t>(~proto::flag::payload);
  entries_.emplace(key, Entry{std::move(kept), {}});
  by_topic_[request.topic].insert(key);
  ++counts_[client];
  return key;
}

void Registry::require_unused(proto::ClientId client, const Message& request) const {
  if (find({client, request.matchtag}) != nullptr)
    throw Error(EPROTO, fmt::format("{}: matchtag {} is in use", request.topic, request.matchtag));
}

void Registry::set(RequestKey key, const Stream& stream) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) found->second.stream = stream;
}

const Registry::Entry* Registry::find(RequestKey key) const noexcept {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

const Message* Registry::request(RequestKey key) const noexcept {
  const Entry* entry = find(key);
  return entry == nullptr ? nullptr : &entry->request;
}

Registry::Entry Registry::extract(Entries::iterator position) {
  const RequestKey key = position->first;
  Entry entry = std::move(position->second);
  entries_.erase(position);
  const auto topic = by_topic_.find(entry.request.topic);
  topic->second.erase(key);
  if (topic->second.empty()) by_topic_.erase(topic);
  const auto counter = counts_.find(key.client);
  if (--counter->second == 0) counts_.erase(counter);
  return entry;
}

std::optional<Registry::Entry> Registry::take(RequestKey key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return extract(found);
}

std::optional<Registry::Entry> Registry::take_cancelled(proto::ClientId client, const Message& cancel) {
  const auto topic = proto::cancelled_topic(cancel.topic);
  if (!topic) throw Error(EPROTO, fmt::format("{}: not a cancellation", cancel.topic));
  const auto found = entries_.find({client, proto::parse_cancel(cancel)});
  if (found == entries_.end() || found->second.request.topic != *topic) return std::nullopt;
  return extract(found);
}

std::vector<Registry::Entry> Registry::take_client(proto::ClientId client) {
  std::vector<Entry> taken;
  auto position = entries_.lower_bound({client, 0});
  while (position != entries_.end() && position->first.client == client) {
    const auto current = position++;
    taken.push_back(extract(current));
  }
  return taken;
}

std::vector<RequestKey> Registry::with_topic(std::string_view topic) const {
  const auto found = by_topic_.find(topic);
  if (found == by_topic_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::size_t Registry::count(proto::ClientId client) const noexcept {
  const auto found = counts_.find(client);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace resourced::daemon::streams
