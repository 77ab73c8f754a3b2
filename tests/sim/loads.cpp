// Loads of another R (resource.reload with a path), which renumbers the hosts. A load is refused while a
// scheduler holds targets, also if the scheduler came while the file was read; once on disk it is in force
// after a crash.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulation.hpp"

namespace resourced::sim {

using rset::ResourceSet;
using text::IdSet;

namespace {

std::vector<std::string> hosts_of(const ResourceSet& resources) {
  std::vector<std::string> hosts;
  resources.nodelist().for_each([&](std::string_view host) { hosts.emplace_back(host); });
  return hosts;
}

}  // namespace

// One that waits may hold the resources already, and has not been told yet.
bool Simulation::is_held() const { return service_->engine().acquisition().holders() > 0; }

std::vector<module::PartitionRule> Simulation::partitions() const {
  if (!with_partition_) return {};
  return left_of(configuration_.hosts.size());
}

void Simulation::run_later(Seconds pause, std::function<void()> work) {
  if (std::this_thread::get_id() == loop_) {
    if (pause > Seconds(0)) {
      timers_.emplace(uptime_ + pause, std::move(work));
    } else {
      later_.push_back(std::move(work));
    }
    return;
  }
  const std::lock_guard lock(mutex_);
  posted_ = std::move(work);
  is_posted_.notify_one();
}

void Simulation::load() {
  if (chance(0.6)) {
    while (!schedulers_.empty()) end_scheduler();
  }
  std::vector<std::string> hosts = configuration_.hosts;
  std::ranges::shuffle(hosts, random_);
  if (hosts.size() > 2 && chance(0.3)) hosts.pop_back();
  if (hosts.size() < most_targets && chance(0.3))
    hosts.push_back(hosts[below(static_cast<std::uint32_t>(hosts.size()))]);
  ResourceSet resources = *resources_of(hosts);
  if (chance(0.5)) resources.add_property("p0", IdSet{below(static_cast<std::uint32_t>(hosts.size()))});
  const std::string path = directory_.write("R", resources.encode());

  note(fmt::format("load of {}", fmt::join(hosts, ",")));
  const bool is_refused = is_held() || loading_;
  const std::uint32_t matchtag = request(operator_, "resource.reload", {{"path", path}});
  asked_.emplace(matchtag, Asked{trace_.back(), false, service_->engine().applied()});
  if (is_refused) {
    asked_.at(matchtag).errnum = EBUSY;
  } else {
    loading_ = matchtag;
    later_.emplace_back([this, matchtag, work = wait_for_thread()] { finish_load(matchtag, work); });
  }
  deliver();
}

void Simulation::finish_load(std::uint32_t matchtag, const std::function<void()>& work) {
  note("the R of a load has been read");
  const std::size_t loads = loads_.size();
  const bool was_held = is_held();
  work();
  loading_.reset();
  demand(loads_.size() == loads + (was_held ? 0 : 1),
         was_held ? "another R is loaded while a scheduler holds targets" : "a load is refused");
  Asked& asked = asked_.at(matchtag);
  asked.errnum = was_held ? EBUSY : 0;
  asked.after = service_->engine().applied();
}

// Like the daemon after it has read an R.
void Simulation::load(const ResourceSet& resources, const std::string& /*path*/, bool /*force*/,
                      const By& /*by*/) {
  configuration_ = {hosts_of(resources), {}};
  if (chance(0.3))
    configuration_.exclude.insert(below(static_cast<std::uint32_t>(configuration_.hosts.size())));
  note(fmt::format("loaded {}, exclude {}", fmt::join(configuration_.hosts, ","),
                   fmt::join(configuration_.exclude, ",")));
  module::DefineCommand command;
  command.inventory = std::make_shared<const ResourceSet>(resources);
  command.exclude = idset_of(configuration_.exclude);
  if (!with_agents_) command.online = resources.ranks();
  command.replaced = resources_of(configured_hosts_)->encode();
  command.partitions = partitions();
  service_->step(std::move(command));
  disown_agents();
  seen_online_ = service_->engine().module().online();
  const std::uint64_t sequence = log_->last_definition();
  reloads_[sequence] = {configuration_.exclude, configuration_.hosts};
  loads_.push_back({sequence, configuration_.hosts, configured_hosts_});
}

void Simulation::find_hosts(module::State& state) {
  while (!loads_.empty() && loads_.back().sequence > disk_.last()) loads_.pop_back();
  if (!loads_.empty() && loads_.back().ended && *loads_.back().ended <= disk_.last()) loads_.clear();
  const bool is_in_force = !loads_.empty() && loads_.back().replaced == configured_hosts_;
  const module::KeptInventory& found = state.kept_inventory;
  const bool is_found = found.resources && found.method == module::DefineMethod::reload &&
                        found.replaced == resources_of(configured_hosts_)->encode();
  demand(is_found == is_in_force, is_in_force ? "an R that was loaded is lost in a crash"
                                              : "an R that was loaded is in force against the configuration");
  if (is_in_force) {
    demand(hosts_of(*found.resources) == loads_.back().hosts, "another R than the one that was loaded");
    loads_.back().ended.reset();
    configuration_.hosts = loads_.back().hosts;
  } else {
    state.kept_inventory = {};
    before_.unload();
    // After the restart event.
    if (!loads_.empty()) loads_.back().ended = disk_.last() + 2;
    configuration_.hosts = configured_hosts_;
  }
  std::erase_if(configuration_.exclude, [&](unsigned rank) { return rank >= configuration_.hosts.size(); });
}

}  // namespace resourced::sim
