// A module with schedulers, without a daemon: executes commands, maintains the tables of a log, and records
// the updates to each scheduler. Partitions may change at any time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/nodes/monitor.hpp"

namespace resourced::test {

/// An inventory of `hosts`, which may repeat; each target has two cores and a gpu.
std::shared_ptr<const rset::ResourceSet> make_inventory(std::string_view hosts,
                                                        const rset::ResourceSet::Properties& properties = {});

/// The view of a scheduler after replaying its updates.
struct View {
  text::IdSet resources;
  text::IdSet up;
  std::map<std::string, text::IdSet> properties;
};

class World {
 public:
  /// Called with each update after the first response.
  using Hear = std::function<void(const std::string& scheduler, const module::Delta& delta)>;
  explicit World(Hear hear) : hear_(std::move(hear)) {}

  /// Starts on an inventory, with an empty log.
  void start(std::shared_ptr<const rset::ResourceSet> inventory, const text::IdSet& exclude);
  /// Starts with every target offline until its agent says hello to the monitor. Also used as a restart; the
  /// monitor is reset.
  void start_with_agents(std::shared_ptr<const rset::ResourceSet> inventory, const text::IdSet& exclude,
                         const nodes::MonitorSettings& settings);
  /// Advances the time to `time`, with the timers of the monitor.
  void pass(double time);
  [[nodiscard]] nodes::Monitor& monitor() noexcept { return monitor_; }

  /// Restarts with the state of the log, without schedulers and with everything online.
  void restart(std::shared_ptr<const rset::ResourceSet> inventory, const text::IdSet& exclude);

  void execute(const module::Command& command);
  void apply(const module::EventBody& body);

  /// Returns the targets and the up set of the first response.
  std::pair<text::IdSet, text::IdSet> acquire(const std::string& scheduler,
                                              const std::optional<std::string>& partition = {});
  void release(const std::string& scheduler);
  void divide(std::vector<module::Partition> partitions);

  [[nodiscard]] const module::Module& module() const noexcept { return *module_; }
  [[nodiscard]] module::Acquisition& acquisition() noexcept { return acquisition_; }
  /// Every event since the last start or restart, in order, like a log that has dropped older ones and begins
  /// with the drains of that time.
  [[nodiscard]] const std::vector<module::Event>& log() const noexcept { return log_; }
  /// Every event since the last start, in order.
  [[nodiscard]] const std::vector<module::Event>& history() const noexcept { return history_; }

  double now = 1000;

 private:
  void begin(const module::DefineCommand& command);
  void tick();
  void apply_event(const module::Event& event);
  module::Acquisition::Tell teller();

  Hear hear_;
  std::unique_ptr<module::Module> module_ = std::make_unique<module::Module>();
  module::Acquisition acquisition_;
  nodes::Monitor monitor_;
  std::map<std::string, module::Acquisition::HolderId> holders_;
  module::Acquisition::HolderId last_ = 0;
  std::vector<module::Event> log_;
  std::vector<module::Event> history_;
};

}  // namespace resourced::test
