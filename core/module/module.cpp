#include "core/module/module.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/targets.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

std::vector<Event> Module::decide(const Command& command, WallTime now) const {
  const bool needs_inventory =
      !std::holds_alternative<DrainCommand>(command) && !std::holds_alternative<UndrainCommand>(command) &&
      !std::holds_alternative<MonitorCommand>(command) && !std::holds_alternative<DefineCommand>(command);
  if (needs_inventory ? !defined() : !has_targets()) throw Error(EAGAIN, "the inventory is not known yet");
  return std::visit([&](const auto& known) { return decide_on(known, now); }, command);
}

void Module::refuse_in_instance(const char* why) const {
  if (has_brokers()) throw Error(ENOSYS, why);
}

std::vector<Event> Module::lose(const IdSet& targets, WallTime now) const {
  IdSet lost = targets & inventory().ranks();
  if (!loses_targets() || lost.empty()) return {};
  Hostlist hosts = addressable().hosts(lost);
  return {{now, LossEvent{std::move(lost), std::move(hosts)}}};
}

std::vector<Event> Module::decide_on(const EvictCommand& command, WallTime now) const {
  EvictEvent event = command.event;
  event.nodelist = addressable().hosts(event.ranks);
  return {{now, std::move(event)}};
}

std::vector<Event> Module::decide_on(const MonitorCommand& command, WallTime now) const {
  IdSet offline = command.offline & state_.targets.online;
  // Targets are lost before they go offline, so that schedulers get one change with both.
  std::vector<Event> events;
  if (!command.instance_left) events = lose(offline, now);
  IdSet online = (command.online & addressable().ranks()) - (state_.targets.online - offline);
  const IdSet torpid_before = state_.targets.torpid - offline;
  IdSet torpid = (command.torpid & ((state_.targets.online - offline) | online)) - torpid_before;
  IdSet lively = command.lively & (torpid_before | torpid);
  if (!offline.empty()) events.push_back({now, OfflineEvent{std::move(offline)}});
  // Targets become torpid before they come online, so that no scheduler sees them come up in between.
  if (!torpid.empty()) events.push_back({now, TorpidEvent{std::move(torpid)}});
  if (!online.empty()) events.push_back({now, OnlineEvent{std::move(online)}});
  if (!lively.empty()) events.push_back({now, LivelyEvent{std::move(lively)}});
  return events;
}

Module::Module(State state) : state_(std::move(state)) { look_again(state_.targets.scheduled.ranks()); }

Outcome Module::apply(const Event& event) {
  Outcome outcome = module::apply(state_, event);
  if (std::holds_alternative<RestartEvent>(event.body) || std::holds_alternative<DefineEvent>(event.body)) {
    // Ranks may mean other targets now.
    pending_ = {};
    waiting_ = {};
    look_again(state_.targets.scheduled.ranks());
  } else {
    follow_schedules(outcome);
  }
  const bool changes_inventory = std::holds_alternative<RestartEvent>(event.body) ||
                                 std::holds_alternative<DefineEvent>(event.body) ||
                                 updates_inventory(event.body);
  if (changes_inventory) ++inventory_version_;
  if (!is_of_ledger(event.body) && !std::holds_alternative<EvictEvent>(event.body)) ++state_version_;
  return outcome;
}

}  // namespace resourced::module
