#include "daemon/service/agents.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "core/module/monitor_commands.hpp"
#include "core/module/verification.hpp"

namespace resourced::daemon::service {

Agents::Agents(Executor& executor, const Settings& settings)
    : executor_(executor), settings_(settings), monitor_(settings.monitor) {}

void Agents::configure(const Settings& settings) {
  settings_ = settings;
  monitor_.configure(settings.monitor);
}

double Agents::interval() const noexcept {
  constexpr double longest = 10;
  constexpr double beats_before_silence = 3;
  const double silence = std::min(settings_.monitor.torpid_after, settings_.monitor.offline_after);
  return std::min(longest, silence / beats_before_silence);
}

void Agents::discover(const DiscoverySettings& settings, RecordedHosts recorded, double now,
                      std::function<void(const ResourceSet&)> define) {
  discovery_.emplace(settings, std::move(recorded), now);
  define_ = std::move(define);
}

void Agents::exclude(const Hostlist& hosts) {
  if (discovery_) discovery_->exclude(hosts);
}

std::vector<Agents::Placed> Agents::place_waiting(double now) {
  if (settings_.expect_all) monitor_.expect(executor_.module().inventory().ranks(), now);
  waiting_.clear();
  std::vector<Placed> placed;
  for (auto& [id, agent] : agents_) {
    if (!agent.waiting) continue;
    const NodeReport report = *std::exchange(agent.waiting, std::nullopt);
    try {
      placed.push_back({agent.request, admit(id, agent.request.client, report, now).rank, std::nullopt});
    } catch (const Error& error) {
      placed.push_back({agent.request, std::nullopt, error});
    }
  }
  return placed;
}

Agents::Welcome Agents::hello(proto::RequestKey request, const NodeReport& report, double now) {
  const AgentId id = ++last_id_;
  Welcome welcome{id, std::nullopt, std::nullopt};
  if (discovery_) {
    discovery_->report(report);
    const auto [place, is_first] = waiting_.emplace(report.hostname, id);
    if (!is_first) welcome.replaced = retire(std::exchange(place->second, id));
    agents_[id] = {request, report};
  } else {
    const Place place = admit(id, request.client, report, now);
    welcome.rank = place.rank;
    welcome.replaced = place.replaced;
    agents_[id] = {request, std::nullopt};
  }
  return welcome;
}

proto::RequestKey Agents::retire(AgentId agent) { return agents_.extract(agent).mapped().request; }

Agents::Place Agents::admit(AgentId agent, proto::ClientId client, const NodeReport& report, double now) {
  const auto may_replace = [&](AgentId present, IdSet::Id rank) {
    return monitor_.is_silent(rank, now) || agents_.at(present).request.client == client;
  };
  const auto [rank, replaced] =
      roster_.admit(agent, report.hostname, executor_.module().inventory(), may_replace);
  Place place{rank, std::nullopt};
  if (replaced) place.replaced = retire(*replaced);
  monitor_.hello(rank, now);
  verify(rank, report);
  return place;
}

void Agents::verify(IdSet::Id rank, const NodeReport& report) {
  const std::string reason = verify_node(executor_.module().inventory(), rank, report, settings_.verify);
  doubtful_.erase(rank);
  if (executor_.module().excluded().contains(rank) || !reason.empty()) doubtful_.emplace(rank, report);
  if (reason.empty()) return;
  if (const auto drain = monitor_drain(IdSet::range(rank, rank), reason, executor_.module())) {
    spdlog::warn("{} is drained: {}", report.hostname, reason);
    executor_.step(*drain);
  }
}

std::vector<std::pair<IdSet::Id, std::string>> Agents::verify_included(const IdSet& ranks) const {
  std::vector<std::pair<IdSet::Id, std::string>> unfit;
  const ResourceSet& inventory = executor_.module().inventory();
  for (const auto& [rank, report] : doubtful_) {
    if (!ranks.contains(rank) || !inventory.ranks().contains(rank)) continue;
    if (std::string reason = verify_node(inventory, rank, report, settings_.verify); !reason.empty()) {
      spdlog::warn("{} is drained: {}", report.hostname, reason);
      unfit.emplace_back(rank, std::move(reason));
    }
  }
  return unfit;
}

void Agents::beat(AgentId agent, double now) {
  if (const auto rank = roster_.rank_of(agent)) monitor_.beat(*rank, now);
}

void Agents::force_down(const IdSet& ranks, double now) {
  ranks.for_each([&](IdSet::Id rank) { monitor_.goodbye(rank, now); });
}

void Agents::end(AgentId id, End end, double now) {
  const auto agent = agents_.find(id);
  if (agent == agents_.end()) return;
  if (agent->second.waiting) {
    // The discovery is over when what it found was refused; agents wait on until the daemon ends.
    if (discovery_) discovery_->withdraw(agent->second.waiting->hostname);
    waiting_.erase(agent->second.waiting->hostname);
  }
  if (const auto rank = roster_.remove(id)) {
    doubtful_.erase(*rank);
    if (end == End::farewell) {
      monitor_.goodbye(*rank, now);
    } else {
      monitor_.gone(*rank, now);
    }
  }
  agents_.erase(agent);
}

std::vector<proto::RequestKey> Agents::forget(const IdSet& ranks) {
  monitor_.forget(ranks);
  std::vector<proto::RequestKey> left;
  ranks.for_each([&](IdSet::Id rank) {
    doubtful_.erase(rank);
    if (const auto agent = roster_.forget(rank)) left.push_back(retire(*agent));
  });
  return left;
}

std::vector<proto::RequestKey> Agents::begin_again(double now) {
  std::vector<proto::RequestKey> ended;
  for (const auto& [id, agent] : agents_) ended.push_back(agent.request);
  agents_.clear();
  roster_ = {};
  doubtful_.clear();
  monitor_ = Monitor(settings_.monitor);
  executor_.module().online().for_each([&](IdSet::Id rank) {
    monitor_.hello(rank, now);
    monitor_.gone(rank, now);
  });
  if (settings_.expect_all) monitor_.expect(executor_.module().inventory().ranks(), now);
  return ended;
}

void Agents::tick(double now) {
  if (discovery_) {
    if (!discovery_->complete(now)) return;
    const ResourceSet inventory = discovery_->inventory();
    discovery_.reset();
    define_(inventory);
  }
  auto batch = monitor_.tick(now);
  if (!batch) return;
  if (presence_ != nullptr) batch = presence_->seen(*std::move(batch));
  for (const Command& command : monitor_commands(*batch, executor_.module())) executor_.step(command);
}

std::optional<double> Agents::next_deadline() const {
  return discovery_ ? discovery_->next_deadline() : monitor_.next_deadline();
}

}  // namespace resourced::daemon::service
