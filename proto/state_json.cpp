#include "proto/state_json.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/drain_json.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"
#include "proto/message.hpp"

namespace resourced::proto {

using module::State;
using nlohmann::json;
using rset::ResourceSet;
using text::IdSet;

namespace {

class StateWriter {
 public:
  explicit StateWriter(Documents& documents) : documents_(documents) {}

  [[nodiscard]] std::string write(const State& state) {
    begin('{');
    flag("defined", state.defined);
    text("method", method_name(state.method));
    document("inventory", state.inventory);
    document("configured", state.configured);
    if (state.with_lost) document("with-lost", *state.with_lost);
    if (!state.brokers.empty()) text("brokers", state.brokers.encode());
    key("kept-properties");
    append_properties(out_, state.kept_properties);
    idset("exclude", state.exclude);
    idset("returning", state.returning);
    idset("online", state.targets.online);
    idset("torpid", state.targets.torpid);
    table("drains", state.targets.drains.groups());
    table("scheduled", state.targets.scheduled.groups());
    kept_inventory(state.kept_inventory);
    if (state.expiration) expiration(*state.expiration);
    allocations(state);
    absent(state.absent);
    end('}');
    return std::move(out_);
  }

 private:
  void begin(char bracket) { out_ += bracket; }
  void end(char bracket) { out_ += bracket; }
  /// The comma before an entry of an array.
  void next() {
    if (out_.back() != '[') out_ += ',';
  }
  void key(std::string_view name) { append_key(out_, name); }
  void text(std::string_view name, std::string_view value) { append_member(out_, name, value); }
  void flag(std::string_view name, bool value) {
    if (value) append_member(out_, name, value);
  }
  void number(std::string_view name, std::uint64_t value) {
    if (value != 0) append_member(out_, name, static_cast<std::int64_t>(value));
  }
  void time(std::string_view name, WallTime value) { append_member(out_, name, value); }
  void idset(std::string_view name, const IdSet& ids) {
    if (!ids.empty()) append_member(out_, name, ids);
  }
  void document(std::string_view name, const ResourceSet& set) {
    if (!(set == ResourceSet())) text(name, documents_.add(set.encode()));
  }

  void table(std::string_view name, const std::map<module::Drain, IdSet>& groups) {
    key(name);
    begin('[');
    for (const auto& [entry, ranks] : groups) {
      next();
      append_drain_group(out_, {entry, ranks});
    }
    end(']');
  }

  void kept_inventory(const module::KeptInventory& kept) {
    if (!kept.resources) return;
    key("kept-inventory");
    begin('{');
    text("method", method_name(kept.method));
    document("R", *kept.resources);
    if (kept.replaced) text("replaced", documents_.add(*kept.replaced));
    end('}');
  }

  void expiration(const module::RunTimeExpiration& set) {
    key("expiration");
    begin('{');
    time("value", set.value);
    time("configured", set.configured);
    time("timestamp", set.timestamp);
    end('}');
  }

  void allocations(const State& state) {
    key("allocations");
    begin('[');
    for (const auto& [name, allocation] : state.ledger.all()) {
      next();
      begin('{');
      text("id", name.id);
      text("R", *allocation->text);
      rows("absent", allocation->absent,
           [this](const module::AbsentResources& resources) { absent(resources); });
      if (allocation->nslots) {
        key("nslots");
        append_integer(out_, static_cast<std::int64_t>(*allocation->nslots));
      }
      if (allocation->expiration) time("expiration", *allocation->expiration);
      if (allocation->note) text("note", *allocation->note);
      if (!name.partition.empty()) text("partition", name.partition);
      end('}');
    }
    end(']');
  }

  void absent(const module::AbsentResources& resources) {
    target(resources.target);
    idset("cores", resources.cores);
    idset("gpus", resources.gpus);
    if (resources.extra) {
      key("extra");
      out_ += resources.extra->dump();
    }
    if (!resources.properties.empty()) {
      key("properties");
      begin('[');
      for (const std::string& name : resources.properties) {
        next();
        append_string(out_, name);
      }
      end(']');
    }
    if (resources.part_of) {
      key("part-of");
      append_integer(out_, *resources.part_of);
    }
  }

  void target(const module::TargetName& name) {
    text("host", name.host);
    number("ordinal", name.ordinal);
  }
  template <class Rows, class Write>
  void rows(std::string_view name, const Rows& rows, Write write) {
    if (rows.empty()) return;
    key(name);
    begin('[');
    for (const auto& row : rows) {
      next();
      begin('{');
      write(row);
      end('}');
    }
    end(']');
  }
  void absent(const module::AbsentStates& states) {
    const auto write = [this](const module::RecordedDrain& row) {
      target(row.target);
      append_drain(out_, row);
    };
    rows("absent-drains", states.drains, write);
    rows("absent-scheduled", states.scheduled, write);
    rows("absent-properties", states.properties, [this](const module::RecordedProperty& row) {
      target(row.target);
      text("name", row.name);
      flag("present", row.present);
    });
    rows("absent-shrunk", states.shrunk, [this](const module::TargetName& row) { target(row); });
  }

  Documents& documents_;
  std::string out_;
};

const json* member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

class StateReader {
 public:
  StateReader(const json& object, const FindDocument& find) : object_(object), find_(find) {}

  [[nodiscard]] State read() {
    State state;
    state.defined = flag(object_, "defined");
    state.method = method(object_);
    state.inventory = set(object_, "inventory");
    state.configured = set(object_, "configured");
    if (member(object_, "with-lost") != nullptr) state.with_lost = set(object_, "with-lost");
    if (const auto brokers = optional_string(object_, "brokers")) {
      state.brokers = text::Hostlist::parse(*brokers);
      state.of_brokers = module::targets_of_brokers(state.brokers, state.recorded_inventory());
    }
    for (const auto& [name, ranks] : required_member(object_, "kept-properties").items())
      state.kept_properties.emplace(name, IdSet::parse(ranks.get<std::string>()));
    state.exclude = idset(object_, "exclude");
    state.returning = idset(object_, "returning");
    state.targets.online = idset(object_, "online");
    state.targets.torpid = idset(object_, "torpid");
    for (const module::DrainGroup& drain : groups("drains"))
      (void)state.targets.drains.drain(drain.ranks, drain, module::Overwrite::nothing);
    for (const module::DrainGroup& drain : groups("scheduled"))
      state.targets.scheduled.add(drain.ranks, drain);
    if (state.defined)
      state.available = (state.inventory.ranks() & state.targets.online) - state.exclude -
                        state.targets.drains.ranks() - state.targets.torpid;
    if (const json* kept = member(object_, "kept-inventory")) {
      state.kept_inventory = {method(*kept), std::make_shared<const ResourceSet>(set(*kept, "R")), {}};
      if (const auto replaced = optional_string(*kept, "replaced"))
        state.kept_inventory.replaced = *find_(*replaced);
    }
    if (const json* set = member(object_, "expiration"))
      state.expiration = {time(*set, "value"), time(*set, "configured"), time(*set, "timestamp")};
    read_allocations(state);
    read_absent(state.absent);
    return state;
  }

 private:
  static bool flag(const json& object, const char* key) { return optional_flag(object, key); }
  static module::DefineMethod method(const json& object) {
    const auto known = parse_method_name(required_string(object, "method"));
    if (!known) throw Error(EPROTO, "method is unknown");
    return *known;
  }
  static WallTime time(const json& object, const char* key) {
    const json& value = required_member(object, key);
    if (!value.is_number()) throw Error(EPROTO, "a time must be a number");
    return wall_time(value.get<double>());
  }
  static std::optional<WallTime> optional_time(const json& object, const char* key) {
    return member(object, key) == nullptr ? std::nullopt : std::optional(time(object, key));
  }
  static IdSet idset(const json& object, const char* key) {
    const auto text = optional_string(object, key);
    return text ? IdSet::parse(*text) : IdSet();
  }
  /// Each document is read once: as a rule the inventory is the configured one.
  [[nodiscard]] ResourceSet set(const json& object, const char* key) {
    const auto name = optional_string(object, key);
    if (!name) return {};
    const auto known = sets_.find(*name);
    if (known != sets_.end()) return known->second;
    return sets_.emplace(*name, ResourceSet::parse(*find_(*name))).first->second;
  }
  [[nodiscard]] const json& array(const char* key) const {
    static const json none = json::array();
    const json* value = member(object_, key);
    if (value == nullptr) return none;
    if (!value->is_array()) throw Error(EPROTO, "an array has another type");
    return *value;
  }

  [[nodiscard]] std::vector<module::DrainGroup> groups(const char* key) const {
    std::vector<module::DrainGroup> groups;
    for (const json& entry : array(key)) groups.push_back(read_drain_group(entry));
    return groups;
  }

  void read_allocations(State& state) const {
    for (const json& entry : array("allocations")) {
      module::Allocation allocation;
      allocation.name = {optional_string(entry, "partition").value_or(""), required_string(entry, "id")};
      allocation.text = std::make_shared<const std::string>(required_string(entry, "R"));
      allocation.resources = ResourceSet::parse(*allocation.text);
      if (const json* absent = member(entry, "absent"))
        for (const json& row : *absent) allocation.absent.push_back(absent_resources(row));
      if (const json* nslots = member(entry, "nslots")) allocation.nslots = nslots->get<std::uint64_t>();
      allocation.expiration = optional_time(entry, "expiration");
      allocation.note = optional_string(entry, "note");
      if (state.ledger.find(allocation.name) != nullptr || state.ledger.first_held(allocation.resources))
        throw Error(EPROTO, "two allocations have one name, or one resource");
      (void)state.ledger.apply(
          module::AllocEvent{{std::make_shared<const module::Allocation>(std::move(allocation))}});
    }
  }

  static module::AbsentResources absent_resources(const json& row) {
    module::AbsentResources resources{target(row), idset(row, "cores"), idset(row, "gpus")};
    if (const json* extra = member(row, "extra")) resources.extra = std::make_shared<const json>(*extra);
    if (const json* names = member(row, "properties"))
      resources.properties = names->get<std::vector<std::string>>();
    if (const json* rank = member(row, "part-of")) resources.part_of = rank->get<IdSet::Id>();
    return resources;
  }

  static module::TargetName target(const json& entry) {
    const json* ordinal = member(entry, "ordinal");
    return {required_string(entry, "host"), ordinal == nullptr ? 0U : ordinal->get<std::uint32_t>()};
  }
  void read_absent(module::AbsentStates& states) const {
    const auto read = [this](const char* key, std::vector<module::RecordedDrain>& rows) {
      for (const json& entry : array(key)) rows.push_back({read_drain(entry), target(entry)});
    };
    read("absent-drains", states.drains);
    read("absent-scheduled", states.scheduled);
    for (const json& entry : array("absent-properties"))
      states.properties.push_back({required_string(entry, "name"), target(entry), flag(entry, "present")});
    for (const json& entry : array("absent-shrunk")) states.shrunk.push_back(target(entry));
  }

  const json& object_;
  const FindDocument& find_;
  std::map<std::string, ResourceSet> sets_;
};

}  // namespace

std::string encode_state(const State& state, Documents& documents) {
  return StateWriter(documents).write(state);
}

State parse_state(std::string_view text, const FindDocument& find) {
  // Keys of an R that others have added may nest as deep as the R does.
  constexpr std::size_t depth = 2 * max_json_depth;
  const auto read = json_text::read_json(text, depth, json_text::JsonManners::strict);
  const json* object = std::get_if<json>(&read);
  if (object == nullptr || !object->is_object()) throw Error(EINVAL, "is not a JSON object");
  try {
    return StateReader(*object, find).read();
  } catch (const json::exception& error) {
    throw Error(EPROTO, error.what());
  }
}

}  // namespace resourced::proto
