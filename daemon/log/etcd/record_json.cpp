#include "daemon/log/etcd/record_json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/module/snapshot.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/log/etcd/packed_text.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"
#include "proto/snapshot_json.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Record;
using log::TableChanges;
using module::TargetNames;
using nlohmann::json;
using Difference = module::PropertyState::Difference;

// Writers leave out what is empty, and readers take what is missing for empty.

void put(json& object, const char* key, bool flag) {
  if (flag) object[key] = true;
}

void put(json& object, const char* key, const std::optional<std::string>& text) {
  if (text) object[key] = *text;
}

void put(json& object, const char* key, const std::optional<WallTime>& time) {
  if (time) object[key] = to_number(*time);
}

void put(json& object, const char* key, const std::vector<std::uint32_t>& numbers) {
  if (!numbers.empty()) object[key] = numbers;
}

void put(json& object, const char* key, const std::optional<module::Actor>& actor) {
  if (actor) object[key] = proto::actor_to_json(*actor);
}

void put(json& object, const char* key, const TargetNames& targets) {
  if (targets.empty()) return;
  json& names = object[key] = json{{"hosts", targets.hosts.encode()}};
  put(names, "ordinals", targets.ordinals);
}

void put(json& object, const char* key, const std::vector<TableChanges::Drained>& drains) {
  for (const TableChanges::Drained& drain : drains) {
    json entry{{"timestamp", to_number(drain.timestamp)}};
    put(entry, "targets", drain.targets);
    put(entry, "reason", drain.reason);
    put(entry, "by", drain.by);
    put(entry, "until", drain.until);
    object[key].push_back(std::move(entry));
  }
}

int number_of(Difference difference) {
  switch (difference) {
    case Difference::same:
      return 0;
    case Difference::added:
      return 1;
    case Difference::removed:
      return -1;
  }
  return 0;
}

json encode_changes(const TableChanges& changes) {
  json object = json::object();
  put(object, "drained", changes.drained);
  put(object, "undrained", changes.undrained);
  put(object, "scheduled", changes.scheduled);
  put(object, "unscheduled", changes.unscheduled);
  for (const TableChanges::Property& property : changes.properties) {
    json entry{{"name", property.name}, {"difference", number_of(property.difference)}};
    put(entry, "targets", property.targets);
    object["properties"].push_back(std::move(entry));
  }
  for (const TableChanges::Allocated& allocation : changes.allocated) {
    json entry{
        {"id", allocation.id}, {"resources", *allocation.resources}, {"partition", allocation.partition}};
    put(entry, "ordinals", allocation.ordinals);
    put(entry, "expiration", allocation.expiration);
    put(entry, "note", allocation.note);
    object["allocated"].push_back(std::move(entry));
  }
  if (!changes.freed.empty()) object["freed"] = changes.freed;
  put(object, "shrunk", changes.shrunk);
  put(object, "unshrunk", changes.unshrunk);
  if (const auto& expiration = changes.expiration) {
    object["expiration"] = {{"value", to_number(expiration->value)},
                            {"configured", to_number(expiration->configured)},
                            {"timestamp", to_number(expiration->timestamp)}};
  }
  if (const auto& inventory = changes.inventory) {
    json& entry = object["inventory"] =
        json{{"method", proto::method_name(inventory->method)}, {"text", inventory->text}};
    put(entry, "replaced", inventory->replaced);
  }
  if (changes.brokers) object["brokers"] = changes.brokers->encode();
  put(object, "forget_allocations", changes.forget_allocations);
  put(object, "forget_properties", changes.forget_properties);
  put(object, "forget_drains", changes.forget_drains);
  put(object, "forget_scheduled", changes.forget_scheduled);
  put(object, "forget_shrunk", changes.forget_shrunk);
  put(object, "forget_loaded", changes.forget_loaded);
  return object;
}

// Reading. The library throws for a value of another type.

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void take(const json& object, const char* key, bool& flag) {
  if (const json* value = find(object, key)) flag = value->get<bool>();
}

void take(const json& object, const char* key, std::optional<std::string>& text) {
  if (const json* value = find(object, key)) text = value->get<std::string>();
}

void take(const json& object, const char* key, std::optional<WallTime>& time) {
  if (const json* value = find(object, key)) time = wall_time(value->get<double>());
}

void take(const json& object, const char* key, text::Hostlist& hosts) {
  if (const json* value = find(object, key)) hosts = text::Hostlist::parse(value->get<std::string>());
}

void take(const json& object, const char* key, std::vector<std::uint32_t>& numbers) {
  if (const json* value = find(object, key)) numbers = value->get<std::vector<std::uint32_t>>();
}

void take(const json& object, const char* key, std::optional<module::Actor>& actor) {
  if (const json* value = find(object, key)) actor = proto::read_actor(*value);
}

void take(const json& object, const char* key, TargetNames& targets) {
  const json* value = find(object, key);
  if (value == nullptr) return;
  take(*value, "hosts", targets.hosts);
  take(*value, "ordinals", targets.ordinals);
  if (!targets.ordinals.empty() && targets.ordinals.size() != targets.hosts.size())
    throw Error(EBADMSG, "as many ordinals as hosts are expected");
}

void take(const json& object, const char* key, std::vector<TableChanges::Drained>& drains) {
  const json* value = find(object, key);
  if (value == nullptr) return;
  for (const json& entry : *value) {
    TableChanges::Drained& drain = drains.emplace_back();
    drain.timestamp = wall_time(entry.at("timestamp").get<double>());
    take(entry, "targets", drain.targets);
    take(entry, "reason", drain.reason);
    take(entry, "by", drain.by);
    take(entry, "until", drain.until);
  }
}

Difference difference_of(int number) {
  for (const Difference difference : {Difference::same, Difference::added, Difference::removed}) {
    if (number_of(difference) == number) return difference;
  }
  throw Error(EBADMSG, "an unknown difference of a property");
}

TableChanges::Allocated decode_allocation(const json& entry) {
  TableChanges::Allocated allocation;
  allocation.id = entry.at("id").get<std::string>();
  allocation.resources = std::make_shared<const std::string>(entry.at("resources").get<std::string>());
  allocation.partition = entry.at("partition").get<std::string>();
  take(entry, "ordinals", allocation.ordinals);
  take(entry, "expiration", allocation.expiration);
  take(entry, "note", allocation.note);
  return allocation;
}

TableChanges::Inventory decode_inventory(const json& entry) {
  const auto method = proto::parse_method_name(entry.at("method").get<std::string>());
  if (!method) throw Error(EBADMSG, "an unknown method of a definition");
  TableChanges::Inventory inventory{*method, entry.at("text").get<std::string>(), std::nullopt};
  take(entry, "replaced", inventory.replaced);
  return inventory;
}

TableChanges decode_changes(const json& object) {
  TableChanges changes;
  take(object, "drained", changes.drained);
  take(object, "undrained", changes.undrained);
  take(object, "scheduled", changes.scheduled);
  take(object, "unscheduled", changes.unscheduled);
  if (const json* properties = find(object, "properties")) {
    for (const json& entry : *properties) {
      TableChanges::Property& property = changes.properties.emplace_back();
      property.name = entry.at("name").get<std::string>();
      property.difference = difference_of(entry.at("difference").get<int>());
      take(entry, "targets", property.targets);
    }
  }
  if (const json* allocated = find(object, "allocated")) {
    for (const json& entry : *allocated) changes.allocated.push_back(decode_allocation(entry));
  }
  if (const json* freed = find(object, "freed")) changes.freed = freed->get<std::vector<std::string>>();
  take(object, "shrunk", changes.shrunk);
  take(object, "unshrunk", changes.unshrunk);
  if (const json* value = find(object, "expiration")) {
    changes.expiration = {wall_time(value->at("value").get<double>()),
                          wall_time(value->at("configured").get<double>()),
                          wall_time(value->at("timestamp").get<double>())};
  }
  if (const json* value = find(object, "inventory")) changes.inventory = decode_inventory(*value);
  if (const json* value = find(object, "brokers"))
    changes.brokers = text::Hostlist::parse(value->get<std::string>());
  take(object, "forget_allocations", changes.forget_allocations);
  take(object, "forget_properties", changes.forget_properties);
  take(object, "forget_drains", changes.forget_drains);
  take(object, "forget_scheduled", changes.forget_scheduled);
  take(object, "forget_shrunk", changes.forget_shrunk);
  take(object, "forget_loaded", changes.forget_loaded);
  return changes;
}

Record decode_record(const json& object) {
  Record record;
  record.sequence = object.at("sequence").get<log::Sequence>();
  record.timestamp = wall_time(object.at("timestamp").get<double>());
  record.name = object.at("name").get<std::string>();
  record.text = object.at("text").get<std::string>();
  take(object, "hosts", record.hosts);
  if (const json* resources = find(object, "R"))
    record.resources = std::make_shared<const std::string>(resources->get<std::string>());
  take(object, "hidden", record.hidden);
  take(object, "of_ledger", record.of_ledger);
  take(object, "by", record.by);
  if (const json* changes = find(object, "changes")) record.changes = decode_changes(*changes);
  if (const json* states = find(object, "snapshot")) {
    module::Snapshot snapshot = proto::parse_snapshot(states->at("states").get<std::string>());
    snapshot.inventory = rset::ResourceSet::parse(states->at("R").get<std::string>());
    record.snapshot = std::make_shared<const module::Snapshot>(std::move(snapshot));
  }
  return record;
}

}  // namespace

// Written piece by piece, as a leader writes each event. Bytes that are not UTF-8, as texts of requests may
// have them, are replaced.
std::string encode_record(const Record& record) {
  constexpr auto replace = json::error_handler_t::replace;
  std::string line = "{";
  const auto put_text = [&line](const char* key, std::string_view text) {
    proto::append_key(line, key);
    proto::append_string(line, text);
  };
  const auto put_json = [&line](const char* key, const json& value) {
    proto::append_key(line, key);
    line += value.dump(-1, ' ', false, replace);
  };
  proto::append_key(line, "sequence");
  line += fmt::format_int(record.sequence).c_str();
  proto::append_key(line, "timestamp");
  proto::append_number(line, to_number(record.timestamp));
  put_text("name", record.name);
  put_text("text", record.text);
  if (!record.hosts.empty()) put_text("hosts", record.hosts.encode());
  if (record.resources) put_text("R", *record.resources);
  if (record.hidden) put_json("hidden", true);
  if (record.of_ledger) put_json("of_ledger", true);
  if (record.by) put_json("by", proto::actor_to_json(*record.by));
  if (const json changes = encode_changes(record.changes); !changes.empty()) put_json("changes", changes);
  if (record.snapshot) {
    put_json("snapshot", {{"R", record.snapshot->inventory.encode()},
                          {"states", proto::encode_snapshot(*record.snapshot)}});
  }
  line += "}\n";
  return line;
}

std::vector<Record> decode_records(std::string_view text, log::Sequence first, log::Sequence last) {
  constexpr std::size_t depth = 8;
  std::vector<Record> records;
  const auto refuse = [&](std::string_view why) {
    return Error(EBADMSG, fmt::format("event {} in etcd is not readable: {}", first + records.size(), why));
  };
  const auto unpacked = unpack(text);
  if (!unpacked) throw refuse("it cannot be unpacked");
  std::string_view lines = *unpacked;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const auto value = json_text::read_json(line, depth, json_text::JsonManners::strict);
    if (!std::holds_alternative<json>(value)) throw refuse("it is not JSON");
    try {
      Record record = decode_record(std::get<json>(value));
      if (record.sequence != first + records.size()) throw refuse("it has another number");
      records.push_back(std::move(record));
    } catch (const json::exception& error) {
      throw refuse(error.what());
    } catch (const Error& error) {
      if (error.errnum() == EBADMSG) throw;
      throw refuse(error.what());
    }
  }
  if (records.size() != last - first + 1) throw refuse("it is missing");
  return records;
}

}  // namespace resourced::daemon::log::etcd
