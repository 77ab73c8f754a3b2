#include "cli/views/event_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"
#include "core/module/event.hpp"
#include "core/rset/targets.hpp"
#include "core/text/quote.hpp"
#include "core/time.hpp"
#include "proto/event_json.hpp"

namespace resourced::cli::views {

namespace {

/// Returns one event of each type.
template <std::size_t... index>
std::vector<module::EventBody> event_bodies(std::index_sequence<index...> /*types*/) {
  return {module::EventBody(std::in_place_index<index>)...};
}

}  // namespace

std::vector<std::string> event_names() {
  const auto bodies = event_bodies(std::make_index_sequence<std::variant_size_v<module::EventBody>>());
  std::vector<std::string> names{std::string(proto::truncate_name)};
  for (const module::EventBody& body : bodies) {
    const std::string_view name = proto::event_name(body);
    if (proto::audience_of(name) != proto::Audience::nobody) names.emplace_back(name);
  }
  return names;
}

using nlohmann::json;
using text::Hostlist;
using text::IdSet;

namespace {

proto::EventEntry read_entry(const json& event) {
  try {
    return proto::read_event_entry(event);
  } catch (const Error&) {
    // The invalid key does not help an operator; the error names the daemon.
    throw Error(EPROTO, "the daemon sent something that is not an event");
  }
}

bool is_time(std::string_view key) {
  return key == "from" || key == "until" || key == "since" || key == "expiration";
}

json* find_string(json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? &*found : nullptr;
}

std::optional<std::string> name_of(const json& by, const UserName& user_name) {
  const auto user = by.is_object() ? by.find("userid") : by.end();
  if (user == by.end() || !user->is_number_unsigned()) return std::nullopt;
  const auto id = user->get<std::uint64_t>();
  if (id > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return user_name(static_cast<std::uint32_t>(id));
}

}  // namespace

EventHead read_head(const json& event) {
  const proto::EventEntry entry = read_entry(event);
  return {entry.timestamp, entry.name};
}

std::string EventFormatter::format_time_of_event(WallTime time) {
  if (times_ == EventTimes::iso) return format_time(time);
  if (times_ == EventTimes::raw) return fmt::format("{:.6f}", to_number(time));
  constexpr Seconds minute{60};
  const bool is_reference = !reference_ || (times_ == EventTimes::human && time - *reference_ >= minute);
  if (is_reference) reference_ = time;
  const double offset = to_number(Seconds(time - *reference_));
  if (times_ == EventTimes::offset) return fmt::format("{:15.6f}", offset);
  if (!is_reference) return fmt::format("[{:+11.6f}]", offset);
  return fmt::format("[{}]", format_local_time(time, "%b%d %H:%M"));
}

std::string EventFormatter::format(const json& event) {
  const proto::EventEntry entry = read_entry(event);
  const bool is_iso = times_ == EventTimes::iso || times_ == EventTimes::human;
  auto line = fmt::format("{} {}", format_time_of_event(entry.timestamp), entry.name);
  const auto append = [&](std::string_view key, const json& value) {
    // An expiration of 0 means none.
    const bool shows_time = is_iso && is_time(key) && value.is_number() && value.get<double>() > 0;
    line += fmt::format(" {}={}", key,
                        shows_time ? format_time(wall_time(value.get<double>())) : json_text::text_of(value));
  };
  if (entry.context != nullptr) {
    for (const auto& [key, value] : entry.context->items()) {
      if (key != "by" && key != "holder") append(key, value);
    }
    for (const char* key : {"holder", "by"}) {
      const auto actor = entry.context->find(key);
      if (actor == entry.context->end()) continue;
      const auto name = user_name_ ? name_of(*actor, user_name_) : std::nullopt;
      append(key, name ? json(*name) : *actor);
    }
  }
  return json_text::printable(line);
}

ContextMatch::ContextMatch(const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const auto equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw UsageError(fmt::format("expected KEY=VALUE, found {}", text::quoted(pair)));
    const std::string value = pair.substr(equals + 1);
    constexpr std::size_t most_levels = 64;
    auto parsed = json_text::read_json(value, most_levels, json_text::JsonManners::lenient);
    auto* as_json = std::get_if<json>(&parsed);
    wanted_.insert_or_assign(pair.substr(0, equals), as_json != nullptr ? std::move(*as_json) : json(value));
  }
}

bool ContextMatch::is_met_by(const json& event) const {
  if (wanted_.empty()) return true;
  const proto::EventEntry entry = read_entry(event);
  return std::ranges::all_of(wanted_, [&](const auto& pair) {
    const auto& [key, wanted] = pair;
    const auto found = entry.context == nullptr ? json::const_iterator() : entry.context->find(key);
    if (entry.context == nullptr || found == entry.context->end()) return false;
    if (json_text::opaque_text(*found)) return json_text::value_of(json_text::text_of(*found)) == wanted;
    constexpr double tolerance = 1e-5;
    return found->is_number_float() && wanted.is_number()
               ? std::abs(found->template get<double>() - wanted.template get<double>()) <= tolerance
               : *found == wanted;
  });
}

TargetClip::TargetClip(std::string_view targets, const rset::ResourceSet& inventory) {
  const rset::HostSearch search = rset::parse_known_targets(targets, inventory);
  ranks_ = search.ranks;
  inventory.hosts(ranks_).for_each([&](std::string_view host) { names_.emplace(host); });
  names_.insert(search.unknown.begin(), search.unknown.end());
}

json TargetClip::clip(json event) {
  const auto context = event.find("context");
  const auto name = event.find("name");
  if (context == event.end() || !context->is_object() || name == event.end() || !name->is_string())
    return event;
  try {
    clip_context(*context, name->get_ref<const std::string&>());
  } catch (const Error&) {
    // Keep a set that cannot be parsed unchanged.
  }
  return event;
}

void TargetClip::clip_context(json& context, std::string_view name) {
  const bool is_restart = name == "restart";
  json* ranks = find_string(context, is_restart ? "ranks" : "idset");
  json* hosts = find_string(context, "nodelist");
  if (ranks != nullptr && hosts != nullptr) {
    const IdSet left = clip_pairs(*ranks, *hosts);
    if (is_restart) ranks_ = left;
  } else if (ranks != nullptr) {
    clip_ranks(*ranks, ranks_);
  } else if (hosts != nullptr) {
    clip_hosts(*hosts);
  }
  if (json* online = find_string(context, "online")) {
    // The set of online targets may be empty, unlike the other sets: all named targets may be offline.
    *online = (IdSet::parse(online->get_ref<const std::string&>()) & ranks_).encode();
  }
  for (const char* key : {"property-add", "property-remove"}) {
    const auto found = context.find(key);
    if (found == context.end() || !found->is_object()) continue;
    for (auto& [property, set] : found->items()) {
      if (set.is_string()) clip_ranks(set, ranks_);
    }
  }
}

IdSet TargetClip::clip_pairs(json& ranks, json& hosts) const {
  IdSet all = IdSet::parse(ranks.get_ref<const std::string&>());
  const Hostlist names = Hostlist::parse(hosts.get_ref<const std::string&>());
  if (all.count() != names.size()) return all;
  IdSet positions;
  IdSet::Id position = 0;
  names.for_each([&](std::string_view host) {
    if (is_wanted(host)) positions.insert(position);
    ++position;
  });
  if (positions.empty()) return all;
  IdSet left;
  position = 0;
  all.for_each([&](IdSet::Id rank) {
    if (positions.contains(position++)) left.insert(rank);
  });
  ranks = left.encode();
  hosts = names.select(positions).encode();
  return left;
}

void TargetClip::clip_ranks(json& set, const IdSet& wanted) {
  const IdSet left = IdSet::parse(set.get_ref<const std::string&>()) & wanted;
  if (!left.empty()) set = left.encode();
}

void TargetClip::clip_hosts(json& list) const {
  Hostlist left;
  Hostlist::parse(list.get_ref<const std::string&>()).for_each([&](std::string_view host) {
    if (is_wanted(host)) left.append(host);
  });
  if (!left.empty()) list = left.encode();
}

}  // namespace resourced::cli::views
