#include "client/operator.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/module/actor.hpp"
#include "core/module/command.hpp"
#include "proto/actor_json.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::client {

namespace {

module::DrainMode inner_form(DrainRequest::Mode mode) {
  switch (mode) {
    case DrainRequest::Mode::refuse:
      return module::DrainMode::none;
    case DrainRequest::Mode::update:
      return module::DrainMode::update;
    case DrainRequest::Mode::overwrite:
      return module::DrainMode::overwrite;
    case DrainRequest::Mode::force_overwrite:
      return module::DrainMode::force_overwrite;
  }
  return module::DrainMode::none;
}

std::string name_of(const std::optional<module::Actor>& by) {
  if (!by) return "";
  const bool is_user = std::holds_alternative<module::ByUser>(*by);
  return fmt::format("{} {}", is_user ? "uid" : proto::actor_key(*by), proto::actor_name(*by));
}

std::vector<Drain> public_form(const std::vector<module::DrainGroup>& drains) {
  std::vector<Drain> all;
  all.reserve(drains.size());
  for (const module::DrainGroup& one : drains)
    all.push_back(
        {one.ranks, one.timestamp, one.reason.value_or(""), one.until, one.ticket, name_of(one.by)});
  return all;
}

nlohmann::json property(module::PropertyCommand::Op op, std::string_view name, std::string_view targets) {
  return proto::topics::encode_property({op, std::string(name), std::string(targets)});
}

}  // namespace

text::IdSet Status::drained() const {
  text::IdSet ranks;
  for (const Drain& drain : drains) ranks |= drain.ranks;
  return ranks;
}

Operator::RequestId Operator::drain(const DrainRequest& wanted, Handler handler) {
  module::DrainCommand command;
  command.targets = wanted.targets;
  command.reason = wanted.reason;
  command.until = wanted.until;
  command.ticket = wanted.ticket;
  command.mode = inner_form(wanted.mode);
  command.from = wanted.from;
  return connection_.send("resource.drain", proto::topics::encode_drain(command), std::move(handler),
                          options_);
}

Operator::RequestId Operator::undrain(std::string_view targets, Handler handler, bool only_drained) {
  module::UndrainCommand command;
  command.targets = targets;
  if (only_drained) command.mode = module::DrainMode::update;
  return connection_.send("resource.undrain", proto::topics::encode_undrain(command), std::move(handler),
                          options_);
}

Operator::RequestId Operator::add_property(std::string_view name, std::string_view targets, Handler handler) {
  return connection_.send("resource.property", property(module::PropertyCommand::Op::add, name, targets),
                          std::move(handler), options_);
}

Operator::RequestId Operator::remove_property(std::string_view name, std::string_view targets,
                                              Handler handler) {
  return connection_.send("resource.property", property(module::PropertyCommand::Op::remove, name, targets),
                          std::move(handler), options_);
}

Operator::RequestId Operator::evict(const Peer& holder, std::string_view reason, Handler handler) {
  return connection_.send("resource.evict",
                          proto::topics::encode_evict({holder.partition, holder.since, std::string(reason)}),
                          std::move(handler), options_);
}

TargetWait Operator::wait(const TargetWaitOptions& wanted, TargetWait::Done done) {
  return {connection_, wanted, std::move(done)};
}

Operator::RequestId Operator::status(Handler handler) {
  return connection_.send("resource.status", std::move(handler), options_);
}

Operator::RequestId Operator::peers(Handler handler) {
  return connection_.send("resource.peers", std::move(handler), options_);
}

Status Operator::read_status(const Response& response) {
  proto::topics::Status status = proto::topics::parse_status(response.payload());
  return {std::move(status.inventory), public_form(status.drains), public_form(status.scheduled),
          std::move(status.online),    std::move(status.exclude),  std::move(status.torpid),
          std::move(status.allocated)};
}

Peers Operator::read_peers(const Response& response) {
  const proto::topics::Peers peers = proto::topics::parse_peers(response.payload());
  Peers all;
  for (const auto& one : peers.holders)
    all.holders.push_back(
        {one.partition, one.since, name_of(one.by), one.targets, one.allocations, one.kept_until});
  for (const auto& one : peers.waiting) all.waiting.push_back({one.partition, one.since, name_of(one.by)});
  all.agents = peers.agents;
  return all;
}

}  // namespace resourced::client
