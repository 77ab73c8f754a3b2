// Decodes entries of event logs (event_json.hpp) that another instance wrote, and checks every key.
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/actor_json.hpp"
#include "proto/allocation_json.hpp"
#include "proto/drain_json.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

using module::EventBody;
using text::Hostlist;
using text::IdSet;

namespace {

using nlohmann::json;

// Runs a reader and puts the key in front of its error text.
template <class Read>
auto named(const char* key, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("context.{}: {}", key, error.what()));
  }
}

class Context {
 public:
  explicit Context(const json* context) : context_(context) {}

  // Returns a member; null if it is missing.
  const json* find(const char* key) const {
    if (context_ == nullptr) return nullptr;
    const auto found = context_->find(key);
    return found == context_->end() ? nullptr : &*found;
  }

  std::optional<std::string> text(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) throw Error(EINVAL, fmt::format("context.{}: must be a string", key));
    return value->get<std::string>();
  }

  const json& array(const char* key) const {
    const json* value = find(key);
    if (value == nullptr || !value->is_array())
      throw Error(EINVAL, fmt::format("context.{}: must be an array", key));
    return *value;
  }

  IdSet idset(const char* key) const {
    const auto value = text(key);
    if (!value) throw Error(EINVAL, fmt::format("context.{}: is missing", key));
    return named(key, [&] { return IdSet::parse(*value); });
  }

  Hostlist hosts(const char* key) const {
    const auto value = text(key);
    return value ? named(key, [&] { return Hostlist::parse(*value); }) : Hostlist{};
  }

  std::optional<double> number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) throw Error(EINVAL, fmt::format("context.{}: must be a number", key));
    return value->get<double>();
  }

  std::optional<WallTime> time(const char* key) const {
    const auto seconds = number(key);
    if (!seconds) return std::nullopt;
    if (!std::isfinite(*seconds) || *seconds < 0)
      throw Error(EINVAL, fmt::format("context.{}: {} is not a time", key, *seconds));
    return wall_time(*seconds);
  }

  bool flag(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) throw Error(EINVAL, fmt::format("context.{}: must be a boolean", key));
    return value->get<bool>();
  }

  std::optional<module::Actor> actor() const {
    const json* value = find("by");
    if (value == nullptr) return std::nullopt;
    return named("by", [&] { return read_actor(*value); });
  }

  rset::ResourceSet::Properties properties(const char* key) const {
    rset::ResourceSet::Properties result;
    const json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_object()) throw Error(EINVAL, fmt::format("context.{}: must be an object", key));
    for (const auto& [name, ranks] : value->items()) {
      if (!ranks.is_string()) throw Error(EINVAL, fmt::format("context.{}.{}: must be a string", key, name));
      const auto& text = ranks.get_ref<const std::string&>();
      result[name] = named(key, [&] { return IdSet::parse(text); });
    }
    return result;
  }

 private:
  const json* context_ = nullptr;
};

constexpr module::Overwrite missing_drain_overwrite = module::Overwrite::reason;

// Requires one host for each rank, or none: older logs have no hosts.
void check_hosts(const Hostlist& hosts, const IdSet& ranks) {
  if (hosts.empty() || hosts.size() == ranks.count()) return;
  throw Error(EINVAL,
              fmt::format("context.nodelist: has {} hosts for {} ranks", hosts.size(), ranks.count()));
}

module::Overwrite read_overwrite(const Context& context, module::Overwrite missing) {
  const auto overwrite = context.number("overwrite");
  if (!overwrite) return missing;
  if (*overwrite != 0 && *overwrite != 1 && *overwrite != 2)
    throw Error(EINVAL, fmt::format("context.overwrite: {} is not 0, 1 or 2", *overwrite));
  return static_cast<module::Overwrite>(static_cast<int>(*overwrite));
}

EventBody read_drain_event(const Context& context) {
  module::DrainEvent event{read_terms(context), context.idset("idset"), context.hosts("nodelist"),
                           read_overwrite(context, missing_drain_overwrite), context.flag("scheduled")};
  check_hosts(event.nodelist, event.ranks);
  return event;
}

EventBody read_undrain(const Context& context) {
  module::UndrainEvent event{context.idset("idset"), context.hosts("nodelist"), context.text("reason"),
                             read_overwrite(context, module::Overwrite::nothing),
                             context.flag("keeps-scheduled")};
  check_hosts(event.nodelist, event.ranks);
  return event;
}

EventBody read_schedule(const Context& context) {
  module::ScheduleEvent event{read_terms(context), context.idset("idset"), context.hosts("nodelist")};
  check_hosts(event.nodelist, event.ranks);
  const auto from = context.time("from");
  if (!from) throw Error(EINVAL, "context.from: is missing");
  event.from = *from;
  return event;
}

EventBody read_cancel(const Context& context) {
  module::CancelEvent event{context.idset("idset"), context.hosts("nodelist"), context.time("from")};
  check_hosts(event.nodelist, event.ranks);
  return event;
}

EventBody read_restart(const Context& context) {
  module::RestartEvent event{context.idset("ranks"), {}, context.hosts("nodelist")};
  if (context.text("online")) event.online = context.idset("online");
  check_hosts(event.nodelist, event.ranks);
  return event;
}

module::PropertyEvent read_property_update(const Context& context, Hostlist hosts) {
  module::PropertyEvent event{context.properties("property-add"), context.properties("property-remove"),
                              std::move(hosts)};
  check_hosts(event.nodelist, property_targets(event));
  return event;
}

// Earlier daemons named the targets that left by another key.
template <class OfTargets>
EventBody read_left(const Context& context, const char* ranks = "idset") {
  OfTargets event{context.idset(ranks), context.hosts("nodelist")};
  check_hosts(event.nodelist, event.ranks);
  return event;
}

// RFC 44 has the expiration alone. Earlier daemons wrote all changes of the inventory under this name, one at
// a time.
EventBody read_update(const Context& context) {
  const auto expiration = context.number("expiration");
  const bool shrinks = context.text("shrink").has_value();
  const auto properties = read_property_update(context, shrinks ? Hostlist() : context.hosts("nodelist"));
  const bool has_properties = !properties.added.empty() || !properties.removed.empty();
  if (int{expiration.has_value()} + int{shrinks} + int{has_properties} > 1)
    throw Error(EINVAL, "context: has several changes of the inventory");
  if (expiration) return module::ExpirationEvent{wall_time(*expiration)};
  if (shrinks) return read_left<module::ShrinkEvent>(context, "shrink");
  return properties;
}

EventBody read_unshrink(const Context& context) {
  module::UnshrinkEvent event{context.idset("idset"), context.hosts("nodelist")};
  check_hosts(event.nodelist, event.ranks);
  return event;
}

EventBody read_forget(const Context& context) {
  module::ForgetEvent event{context.hosts("nodelist")};
  if (event.nodelist.empty()) throw Error(EINVAL, "context.nodelist: names no host");
  return event;
}

EventBody read_alloc(const Context& context) {
  module::AllocEvent event;
  for (const json& entry : context.array("allocations")) {
    module::AllocationRequest read = named("allocations", [&] { return read_allocation(entry); });
    auto text = std::make_shared<const std::string>(read.resources.encode());
    const auto nslots = read.resources.nslots();
    event.allocations.push_back(std::make_shared<const module::Allocation>(
        module::Allocation{{std::move(read.partition).value_or(""), std::move(read.id)},
                           std::move(read.resources),
                           std::move(text),
                           {},
                           nslots,
                           read.expiration,
                           std::move(read.note)}));
  }
  return event;
}

EventBody read_alloc_update(const Context& context) {
  module::AllocUpdateEvent event;
  const auto id = context.text("id");
  if (!id) throw Error(EINVAL, "context.id: is missing");
  event.name = {context.text("partition").value_or(""), *id};
  event.expiration = context.time("expiration");
  event.note = context.text("note");
  if (const json* added = context.find("added"))
    event.added = named("added", [&] { return read_resources(*added, "added", *id); });
  event.nodelist = context.hosts("nodelist");
  return event;
}

EventBody read_free(const Context& context) {
  module::FreeEvent event;
  for (const json& id : context.array("ids")) {
    if (!id.is_string()) throw Error(EINVAL, "context.ids: must be strings");
    event.ids.push_back(id.get<std::string>());
  }
  event.partition = context.text("partition");
  event.nodelist = context.hosts("nodelist");
  event.partial = context.text("idset").has_value();
  if (event.partial) {
    event.ranks = context.idset("idset");
    check_hosts(event.nodelist, event.ranks);
    if (event.ids.size() != 1) throw Error(EINVAL, "context.ids: a part is freed of one allocation");
  }
  return event;
}

EventBody read_evict(const Context& context) {
  module::EvictEvent event{context.idset("idset"), context.hosts("nodelist")};
  check_hosts(event.nodelist, event.ranks);
  event.partition = context.text("partition").value_or("");
  if (const json* holder = context.find("holder"))
    event.holder = named("holder", [&] { return read_actor(*holder); });
  event.since = context.time("since").value_or(WallTime());
  event.reason = context.text("reason").value_or("");
  return event;
}

template <class OfRanks>
EventBody read_ranks(const Context& context) {
  return OfRanks{context.idset("idset")};
}

using Reader = EventBody (*)(const Context&);

const std::map<std::string_view, Reader>& readers() {
  static const std::map<std::string_view, Reader> known{
      {"restart", read_restart},
      {"resource-update", read_update},
      {"property-update",
       [](const Context& context) {
         return EventBody(read_property_update(context, context.hosts("nodelist")));
       }},
      {"shrink", [](const Context& context) { return read_left<module::ShrinkEvent>(context); }},
      {loss_name, [](const Context& context) { return read_left<module::LossEvent>(context); }},
      {"unshrink", read_unshrink},
      {"forget", read_forget},
      {"drain", read_drain_event},
      {"undrain", read_undrain},
      {"drain-schedule", read_schedule},
      {"drain-cancel", read_cancel},
      {evict_name, read_evict},
      {"online", read_ranks<module::OnlineEvent>},
      {"offline", read_ranks<module::OfflineEvent>},
      {"torpid", read_ranks<module::TorpidEvent>},
      {"lively", read_ranks<module::LivelyEvent>},
      {alloc_name, read_alloc},
      {alloc_update_name, read_alloc_update},
      {free_name, read_free},
  };
  return known;
}

}  // namespace

module::Overwrite read_drain_overwrite(const json& context) {
  return read_overwrite(Context(&context), missing_drain_overwrite);
}

EventEntry read_event_entry(const json& entry) {
  if (!entry.is_object()) throw Error(EINVAL, "must be an object");
  const auto timestamp = entry.find("timestamp");
  if (timestamp == entry.end() || !timestamp->is_number()) throw Error(EINVAL, "timestamp: must be a number");
  const auto name = entry.find("name");
  if (name == entry.end() || !name->is_string()) throw Error(EINVAL, "name: must be a string");
  const auto context = entry.find("context");
  if (context != entry.end() && !context->is_object()) throw Error(EINVAL, "context: must be an object");
  return {wall_time(timestamp->get<double>()), name->get_ref<const std::string&>(),
          context == entry.end() ? nullptr : &*context};
}

std::optional<module::Event> decode_event(const json& entry) {
  const EventEntry event = read_event_entry(entry);
  if (!std::isfinite(to_number(event.timestamp)) || event.timestamp <= WallTime{})
    throw Error(EINVAL, "timestamp: must be greater than 0");
  const auto reader = readers().find(event.name);
  if (reader == readers().end()) return std::nullopt;
  const Context context(event.context);
  return module::Event{event.timestamp, reader->second(context), context.actor()};
}

namespace {

std::shared_ptr<const rset::ResourceSet> read_document(const Context& rest, const char* key,
                                                       const FindDocument& find) {
  const auto name = rest.text(key);
  return name ? std::make_shared<const rset::ResourceSet>(rset::ResourceSet::parse(*find(*name))) : nullptr;
}

module::DefineEvent read_define(const Context& context, const Context& rest, const FindDocument& find) {
  module::DefineEvent event;
  const auto method = parse_method_name(context.text("method").value_or(""));
  if (!method) throw Error(EINVAL, "context.method: is none of RFC 44");
  event.method = *method;
  event.inventory = read_document(rest, "R", find);
  if (!event.inventory) throw Error(EINVAL, "R: is missing");
  event.configured = read_document(rest, "configured", find);
  if (!event.configured) event.configured = event.inventory;
  if (rest.text("exclude")) event.exclude = rest.idset("exclude");
  event.kept_properties = rest.properties("properties");
  if (!rest.flag("loaded")) return event;
  event.loaded.emplace();
  if (const auto replaced = rest.text("replaced")) event.loaded->replaced = *find(*replaced);
  return event;
}

}  // namespace

module::Event decode_complete(const json& entry, std::string_view rest, const FindDocument& find) {
  // {"drains": [{"by": {...}}]}
  constexpr std::size_t depth = 4;
  std::optional<json> object;
  if (!rest.empty()) {
    auto read = json_text::read_json(rest, depth, json_text::JsonManners::strict);
    if (!std::holds_alternative<json>(read)) throw Error(EINVAL, "what is beside it is not JSON");
    object = std::get<json>(std::move(read));
  }
  const Context more(object ? &*object : nullptr);
  const EventEntry event = read_event_entry(entry);
  if (event.name == define_name) {
    const Context context(event.context);
    return {event.timestamp, read_define(context, more, find), context.actor()};
  }
  std::optional<module::Event> decoded = decode_event(entry);
  if (!decoded) throw Error(EINVAL, fmt::format("there is no event {}", event.name));
  if (auto* restart = std::get_if<module::RestartEvent>(&decoded->body)) {
    restart->of_brokers = more.flag("brokers");
    if (object && object->contains("drains"))
      for (const json& drain : more.array("drains")) restart->drains.push_back(read_drain_group(drain));
  }
  return *std::move(decoded);
}

}  // namespace resourced::proto
