// Snapshots of the State, and complete events: each member comes back, and no key can be left out unnoticed.
#include "proto/state_json.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/event_json.hpp"
#include "state_difference.hpp"

namespace resourced::proto {

using module::State;
using resourced::test::state_difference;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

using nlohmann::json;

std::string digest(std::string_view text) { return std::to_string(std::hash<std::string_view>{}(text)); }

ResourceSet set_of(const std::string& ranks, const std::string& hosts) {
  ResourceSet set({{IdSet::parse(ranks), IdSet::parse("0-3"), IdSet{0}}}, Hostlist::parse(hosts));
  set.add_property("fast", IdSet{set.ranks().last()});
  return set;
}

module::SharedAllocation allocation() {
  module::Allocation made;
  made.name = {"batch", "j1"};
  made.resources = ResourceSet({{IdSet{0}, IdSet{1}, {}}}, Hostlist::parse("a"));
  made.text = std::make_shared<const std::string>(made.resources.encode());
  made.absent = {
      {{"z", 2}, IdSet{0}, IdSet{1}, std::make_shared<const json>(json{{"key", {1, {2}}}}), {"fast"}, 3},
      {{"y", 0}, IdSet{2}, {}}};
  made.nslots = 7;
  made.expiration = wall_time(5000);
  made.note = "a note";
  return std::make_shared<const module::Allocation>(std::move(made));
}

/// Every member differs from that of an empty State.
State full_state() {
  State state;
  state.defined = true;
  state.method = module::DefineMethod::reload;
  state.inventory = set_of("0-2", "a,a,b");
  state.inventory.set_expiration(wall_time(9000));
  state.with_lost = set_of("0-4", "a,a,b,c,d");
  state.configured = set_of("0-3", "a,a,b,c");
  state.kept_inventory = {module::DefineMethod::kvs, std::make_shared<const ResourceSet>(set_of("0", "a")),
                          "{R}"};
  state.expiration = {wall_time(9000), wall_time(8000), wall_time(7)};
  state.kept_properties = {{"slow", IdSet{0}}};
  state.exclude = IdSet{2};
  state.returning = IdSet{3};
  state.brokers = Hostlist::parse("a,a,b");
  state.of_brokers = module::targets_of_brokers(state.brokers, *state.with_lost);
  module::DrainTable& drains = state.targets.drains;
  (void)drains.drain({1}, {{"fan", wall_time(60), "HW-1"}, wall_time(5), module::ByUser{1000}},
                     module::Overwrite::nothing);
  (void)drains.drain({2}, {{}, wall_time(6), module::ByHost{"b"}}, module::Overwrite::nothing);
  state.targets.scheduled.add({0}, {{"later", wall_time(80), "HW-2"}, wall_time(70), module::ByKey{"ops"}});
  state.targets.scheduled.add({0, 1}, {{"last", {}, "HW-5"}, wall_time(90), module::ByUser{3}});
  state.targets.online = IdSet{0, 1};
  state.targets.torpid = IdSet{1};
  state.available = IdSet{0};
  state.ledger.apply(module::AllocEvent{{allocation()}});
  state.absent.drains = {{{{"disk", wall_time(44), "HW-3"}, wall_time(4), module::ByUser{1}}, {"x", 1}}};
  state.absent.scheduled = {{{{"soon", wall_time(99), "HW-4"}, wall_time(90), module::ByUser{2}}, {"x", 0}}};
  state.absent.properties = {{"fast", {"x", 1}, true}, {"slow", {"x", 1}, false}};
  state.absent.shrunk = {{"w", 3}};
  return state;
}

State read(const std::string& text, const Documents& documents) {
  return parse_state(text, [&](const std::string& name) {
    const auto found = documents.texts().find(name);
    if (found == documents.texts().end()) throw Error(EBADMSG, "no such document");
    return found->second;
  });
}

/// Calls f with the document and each object in it, however deep.
void for_each_object(json& value, const std::function<void(json&)>& f) {
  if (value.is_object()) f(value);
  if (value.is_structured())
    for (json& each : value) for_each_object(each, f);
}

TEST_CASE("a State comes back from a snapshot with every member") {
  const State state = full_state();
  Documents documents(digest);
  const std::string text = encode_state(state, documents);
  CHECK(state_difference(state, read(text, documents)) == "");
  Documents none(digest);
  CHECK(state_difference(State{}, read(encode_state({}, none), none)) == "");
}

TEST_CASE("every key of a snapshot is needed: without it the State is another one, or refused") {
  const State state = full_state();
  Documents documents(digest);
  json whole = json::parse(encode_state(state, documents));
  int keys = 0;
  for_each_object(whole, [&](json& object) {
    const json before = object;
    for (const auto& [key, value] : before.items()) {
      ++keys;
      CAPTURE(key);
      object.erase(key);
      try {
        const std::string difference = state_difference(state, read(whole.dump(), documents));
        CHECK(difference != "");
      } catch (const Error&) {
        // Refused.
      }
      object = before;
    }
  });
  CHECK(keys > 60);
}

TEST_CASE("a snapshot that no daemon writes is refused") {
  Documents documents(digest);
  const json whole = json::parse(encode_state(full_state(), documents));
  const auto refuses = [&](const std::string& pointer, const json& value) {
    json changed = whole;
    changed[json::json_pointer(pointer)] = value;
    CAPTURE(pointer);
    CAPTURE(value.dump());
    CHECK_THROWS_AS((void)read(changed.dump(), documents), Error);
  };
  for (const json& actor : {json("root"), json::object(), json{{"userid", -1}}, json{{"userid", 4294967296}},
                            json{{"key", ""}}, json{{"key", "a"}, {"host", "b"}}, json{{"friend", "a"}}}) {
    refuses("/drains/0/by", actor);
    refuses("/absent-drains/0/by", actor);
  }
  for (const json& value : {json(1), json("x"), json::array({1}), json::object({{"a", 1}})}) {
    refuses("/allocations", value);
    refuses("/drains", value);
    refuses("/expiration", value);
    refuses("/absent-shrunk", value);
  }
  refuses("/method", "guess");
  refuses("/inventory", "no digest");
  refuses("/exclude", "2-1");
  refuses("/allocations/0/R", "{}");
  refuses("/allocations/0/absent/0/cores", 5);
  refuses("/kept-properties", {{"p", 5}});
  json twice = whole;
  twice["allocations"].push_back(twice["allocations"][0]);
  CHECK_THROWS_AS((void)read(twice.dump(), documents), Error);
  CHECK_THROWS_AS((void)read("[]", documents), Error);
  CHECK_THROWS_AS((void)read("{", documents), Error);
  CHECK_THROWS_AS((void)read("", documents), Error);
}

/// Events that use every member which only the fold needs, each on a State that shows it.
std::vector<std::pair<State, module::EventBody>> full_events() {
  std::vector<std::pair<State, module::EventBody>> events;
  module::RestartEvent restart;
  restart.ranks = IdSet{0, 1};
  restart.nodelist = Hostlist::parse("a,b");
  restart.of_brokers = true;
  restart.drains = {{{{"kvs", wall_time(50)}, wall_time(3), module::ByUser{5}}, IdSet{1}},
                    {{{}, wall_time(4)}, IdSet{0}}};
  events.emplace_back(State{}, restart);
  module::DefineEvent define;
  define.method = module::DefineMethod::reload;
  define.inventory = std::make_shared<const ResourceSet>(set_of("0-1", "a,b"));
  define.configured = std::make_shared<const ResourceSet>(set_of("0-2", "a,b,c"));
  define.exclude = IdSet{1};
  define.kept_properties = {{"fast", IdSet{1}}};
  define.loaded.emplace().replaced = "{R}";
  events.emplace_back(State{}, define);
  return events;
}

TEST_CASE("a complete event changes a State as the event did, and every key of it is needed") {
  for (const auto& change : full_events()) {
    const State& before = change.first;
    const module::EventBody& body = change.second;
    const module::Event event{wall_time(9), body};
    const auto* definition = std::get_if<module::DefineEvent>(&body);
    const DocumentText resources = definition == nullptr
                                       ? nullptr
                                       : std::make_shared<const std::string>(definition->inventory->encode());
    Documents documents(digest);
    const std::string rest = encode_rest(event, resources, documents);
    const json entry = json::parse(encode_event(event));
    CAPTURE(rest);
    const auto after = [&](const std::string& complete) {
      State state = before;
      (void)module::apply(state, decode_complete(entry, complete, [&](const std::string& name) {
                            return documents.texts().at(name);
                          }));
      return state;
    };
    State expected = before;
    (void)module::apply(expected, event);
    CHECK(state_difference(expected, after(rest)) == "");
    REQUIRE_FALSE(rest.empty());
    json whole = json::parse(rest);
    for_each_object(whole, [&](json& object) {
      const json kept = object;
      for (const auto& [key, value] : kept.items()) {
        CAPTURE(key);
        object.erase(key);
        try {
          const std::string difference = state_difference(expected, after(whole.dump()));
          CHECK(difference != "");
        } catch (const Error&) {
          // Refused.
        }
        object = kept;
      }
    });
  }
}

}  // namespace
}  // namespace resourced::proto
