#include "checks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace resourced::sim {
namespace {

using nlohmann::json;

std::map<std::string, Reference::Ranks> restricted(const std::map<std::string, Reference::Ranks>& properties,
                                                   const Reference::Ranks& ranks) {
  std::map<std::string, Reference::Ranks> result;
  for (const auto& [name, all] : properties) {
    if (auto some = shared(all, ranks); !some.empty()) result.emplace(name, std::move(some));
  }
  return result;
}

}  // namespace

Reference::Ranks shared(const Reference::Ranks& a, const Reference::Ranks& b) {
  Reference::Ranks both;
  std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
  return both;
}

Reference::Ranks without(const Reference::Ranks& a, const Reference::Ranks& b) {
  Reference::Ranks rest;
  std::ranges::set_difference(a, b, std::inserter(rest, rest.end()));
  return rest;
}

std::map<std::string, Reference::Ranks> properties_of(const Reference& state, const Reference::Ranks& ranks) {
  return restricted(state.properties(), ranks);
}

bool has_properties(const View& view, const Reference& state) {
  const Reference::Ranks told = without(view.resources, state.excluded());
  return restricted(view.properties, told) == properties_of(state, told);
}

bool shows(const View& view, const Reference& state) {
  return view.up == shared(state.available(), view.resources) &&
         view.resources == shared(state.present(), view.resources) && has_properties(view, state) &&
         view.expiration == state.expiration();
}

void check_first(const View& view, const Reference& state, const Reference::Ranks& all) {
  demand(view.resources == all, "other resources than the journal has");
  demand(view.up == shared(state.available(), all), "others up than in the journal");
  demand(view.properties == properties_of(state, all), "other properties");
}

void check_status(const json& status, const Reference& state) {
  const auto check = [&](bool holds, const char* otherwise) {
    demand(holds, [&] { return fmt::format("status has {}: {}", otherwise, status.dump()); });
  };
  std::map<unsigned, std::string> drained;
  for (const auto& [ranks, drain] : status.at("drain").items()) {
    for (const unsigned rank : parse_ranks(ranks)) drained.emplace(rank, drain.at("reason"));
  }
  check(drained == state.drained(), "other drains than the journal");
  std::map<unsigned, Reference::Schedules> scheduled;
  for (json drain : status.value("schedules", json::array())) {
    const Reference::Ranks ranks = parse_ranks(drain.at("targets"));
    drain.erase("targets");
    for (const unsigned rank : ranks) scheduled[rank].emplace(drain.at("from"), drain);
  }
  check(scheduled == state.scheduled(), "other scheduled drains");
  std::map<unsigned, json> first;
  for (const auto& [rank, drains] : scheduled) first.emplace(rank, drains.begin()->second);
  std::map<unsigned, json> next;
  const json listed = status.value("scheduled", json::object());
  for (const auto& [ranks, drain] : listed.items()) {
    for (const unsigned rank : parse_ranks(ranks)) next.emplace(rank, drain);
  }
  check(next == first, "another next scheduled drain");
  const auto ranks = [&](const char* key) { return parse_ranks(status.at(key).get<std::string>()); };
  const Reference::Ranks present = state.present();
  check(ranks("online") == shared(state.online(), present), "others online");
  check(ranks("torpid") == shared(state.torpid(), present), "others torpid");
  check(ranks("exclude") == shared(state.excluded(), present), "others excluded");
  const View whole(json{{"resources", status.at("R")}, {"up", ""}});
  check(whole.resources == present, "other targets than the journal");
  check(whole.properties == properties_of(state, present), "other properties");
  check(whole.expiration == state.expiration(), "another expiration");
}

}  // namespace resourced::sim
