// A module with schedulers around it, driven without a daemon: carries out commands, keeps the tables that a
// log keeps, and collects what each scheduler is told. Partitions may change at any time here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/tables.hpp"
#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/nodes/monitor.hpp"

namespace resourced::test {

/// A set of `hosts`, which may repeat, with two cores and a gpu a target.
std::shared_ptr<const ResourceSet> make_inventory(std::string_view hosts,
                                                  const ResourceSet::Properties& properties = {});

/// What a scheduler believes after replaying all that it was told.
struct View {
  IdSet resources;
  IdSet up;
  std::map<std::string, IdSet> properties;
};

class World {
 public:
  /// What a scheduler hears after its first picture.
  using Hear = std::function<void(const std::string& scheduler, const Delta& delta)>;
  explicit World(Hear hear) : hear_(std::move(hear)) {}

  /// Starts on an inventory with nothing recorded.
  void start(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude);
  /// The same, with every target offline until its agent says hello to the monitor. Whether a restart is
  /// meant too, the monitor begins anew.
  void start_with_agents(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude,
                         const nodes::MonitorSettings& settings);
  /// Lets time pass until `time`, with the timer that the monitor asks for.
  void pass(double time);
  [[nodiscard]] nodes::Monitor& monitor() noexcept { return monitor_; }

  /// Starts again with what was recorded, schedulers gone, everything online. The log of this start begins
  /// anew.
  void restart(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude);

  void execute(const Command& command);
  void apply(const EventBody& body);

  /// Returns the first picture: targets and up.
  std::pair<IdSet, IdSet> acquire(const std::string& scheduler,
                                  const std::optional<std::string>& partition = {});
  void release(const std::string& scheduler);
  void divide(std::vector<Partition> partitions);

  [[nodiscard]] const Module& module() const noexcept { return *module_; }
  [[nodiscard]] Acquisition& acquisition() noexcept { return acquisition_; }
  /// Every event since the last start, in order.
  [[nodiscard]] const std::vector<Event>& log() const noexcept { return log_; }
  [[nodiscard]] RecordedState recorded() const { return tables_.state(); }

  double now = 1000;

 private:
  void begin(const StartCommand& command);
  void tick();
  void apply_event(const Event& event);
  /// Applies an event whose changes the tables have already.
  void apply_known(const Event& event);
  Acquisition::Tell teller();

  Hear hear_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Acquisition acquisition_;
  nodes::Monitor monitor_;
  std::map<std::string, Acquisition::HolderId> holders_;
  Acquisition::HolderId last_ = 0;
  std::vector<Event> log_;
  engine::Tables tables_;
};

}  // namespace resourced::test
