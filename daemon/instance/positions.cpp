#include "daemon/instance/positions.hpp"

#include <cerrno>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "daemon/instance/kept_state.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::instance {

using proto::Message;
using service::Service;
using streams::JournalPosition;
using streams::SchedulerPosition;
using text::IdSet;

namespace {

using nlohmann::json;

void advance(SchedulerPosition& position, const module::Delta& delta) {
  position.up |= delta.up;
  position.up -= delta.down;
  position.up -= delta.shrink;
  position.resources -= delta.shrink;
  if (delta.expiration) position.expiration = *delta.expiration;
  module::merge_properties(delta.property_add, position.properties.added, position.properties.removed);
  module::merge_properties(delta.property_remove, position.properties.removed, position.properties.added);
}

/// Whether the log keeps events of this name: a process that replaces this one knows no others. A truncate
/// represents removed events, and is in no log.
bool is_kept(std::string_view name, bool keeps_all) {
  if (keeps_all) return name != "truncate";
  return name == "drain" || name == "undrain" || name == "resource-update";
}

// Moves a position behind a batch, to the last event that the log keeps. Only the beginnings of events are
// read, because a batch may have a million bytes: `{"timestamp":T,"name":"NAME"`. Events with one timestamp
// may be in several batches.
void advance(JournalPosition& position, std::string_view batch, bool keeps_all) {
  constexpr std::string_view begin = R"({"timestamp":)";
  constexpr std::string_view middle = R"(,"name":")";
  // Leave out R, which follows the events.
  batch = batch.substr(0, batch.find(R"(],"R":)"));
  bool has_events = false;
  for (std::size_t at = 0; (at = batch.find(begin, at)) != std::string_view::npos;) {
    at += begin.size();
    has_events = true;
    double timestamp = 0;
    const char* const end = batch.data() + batch.size();
    const auto [after, errnum] = std::from_chars(batch.data() + at, end, timestamp);
    const std::string_view rest(after, static_cast<std::size_t>(end - after));
    if (errnum != std::errc() || !rest.starts_with(middle)) continue;
    const std::string_view name = rest.substr(middle.size());
    if (!is_kept(name.substr(0, name.find('"')), keeps_all)) continue;
    if (position.last != wall_time(timestamp)) {
      position.last = wall_time(timestamp);
      position.at_last = 0;
    }
    ++position.at_last;
  }
  position.live = position.live || !has_events;
}

}  // namespace

void Positions::forget(proto::ClientId client) {
  streams_.erase(streams_.lower_bound({client, 0}),
                 streams_.upper_bound({client, std::numeric_limits<std::uint32_t>::max()}));
}

std::string Positions::after(proto::ClientId client, const Message& response,
                             const std::function<Resources()>& resources) {
  const proto::RequestKey key{client, response.matchtag};
  const bool is_acquire = response.topic == "resource.acquire";
  if (!response.has(proto::flag::streaming) || response.errnum() != 0 || !response.payload ||
      (!is_acquire && response.topic != "resource.journal")) {
    streams_.erase(key);
    return {};
  }
  const auto known = streams_.find(key);
  if (is_acquire && known == streams_.end()) {
    const Resources acquired = resources();
    streams_[key] = SchedulerPosition{acquired.acquirable, proto::topics::up_of_acquired(response.text()),
                                      acquired.expiration, acquired.properties};
  } else if (is_acquire) {
    instance::advance(std::get<SchedulerPosition>(known->second),
                      proto::topics::parse_delta(read_object(response.text())));
  } else {
    auto& position = known == streams_.end() ? streams_[key] = JournalPosition{} : known->second;
    instance::advance(std::get<JournalPosition>(position), response.text(), keeps_all_);
  }
  return encode_position(streams_[key]);
}

std::vector<std::pair<proto::RequestKey, std::string>> Positions::mute() {
  std::vector<std::pair<proto::RequestKey, std::string>> marks;
  for (auto& [key, position] : streams_) {
    auto* scheduler = std::get_if<SchedulerPosition>(&position);
    if (scheduler == nullptr) continue;
    scheduler->muted = true;
    marks.emplace_back(key, encode_position(position));
  }
  return marks;
}

std::string encode_position(const Service::Position& position) {
  if (const auto* scheduler = std::get_if<SchedulerPosition>(&position)) {
    return json{{"resources", scheduler->resources.encode()},
                {"up", scheduler->up.encode()},
                {"expiration", to_number(scheduler->expiration)},
                {"properties", changes_to_json(scheduler->properties)},
                {"muted", scheduler->muted}}
        .dump();
  }
  const auto& journal = std::get<JournalPosition>(position);
  return json{{"last", to_number(journal.last)}, {"at-last", journal.at_last}, {"live", journal.live}}.dump();
}

Service::Position parse_position(std::string_view mark) {
  try {
    const json object = read_object(mark);
    if (object.contains("up")) {
      return SchedulerPosition{IdSet::parse(object.at("resources").get<std::string>()),
                               IdSet::parse(object.at("up").get<std::string>()),
                               wall_time(object.at("expiration").get<double>()),
                               changes_from_json(object.at("properties")), object.at("muted").get<bool>()};
    }
    return JournalPosition{wall_time(object.at("last").get<double>()),
                           object.at("at-last").get<std::size_t>(), object.at("live").get<bool>()};
  } catch (const json::exception& error) {
    throw Error(EPROTO, fmt::format("mark: {}", error.what()));
  }
}

}  // namespace resourced::daemon::instance
