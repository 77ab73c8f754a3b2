// The way through, for everything that changes: decide, apply, store, outbox. It owns the state and numbers
// the events; who asked and over which transport is not its business.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/module/partition.hpp"
#include "daemon/outbox.hpp"
#include "daemon/record.hpp"
#include "daemon/store.hpp"

namespace resourced::daemon {

class Engine {
 public:
  /// `now` gives seconds since the Unix epoch; `log` takes each event that is applied, for the journal.
  using Log = std::function<void(LoggedEvent event, IdSet ranks)>;
  Engine(Store& store, Outbox& outbox, std::function<double()> now, Log log);

  /// Hears of targets that have left for good.
  void on_removed(std::function<void(const IdSet&)> removed) { removed_ = std::move(removed); }

  /// Takes up what was recorded, on the inventory of today, and divides it. Throws Error if partitions
  /// overlap.
  void start(const StartCommand& command, std::vector<PartitionRule> partitions);

  /// Carries out a command. What it causes is applied when this returns and durable once applied() is
  /// committed. Throws Error if the command is refused.
  void execute(const Command& command);

  /// Puts another inventory in the place of the present one, and divides it by these rules. As execute().
  /// Throws Error EINVAL if partitions overlap. Requires that nobody holds resources.
  void load(const LoadCommand& command, std::vector<PartitionRule> partitions);

  /// A holder lets go; others may get what it had kept from them.
  void release(Acquisition::HolderId holder);

  /// The last event that was applied: answers about the present state may leave once it is on disk.
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }
  /// The timestamp of that event.
  [[nodiscard]] double applied_at() const noexcept { return applied_at_; }

  [[nodiscard]] const Module& module() const noexcept { return module_; }
  [[nodiscard]] Acquisition& acquisition() noexcept { return acquisition_; }
  [[nodiscard]] const Acquisition& acquisition() const noexcept { return acquisition_; }

 private:
  Record apply(const Event& event);
  [[nodiscard]] Acquisition::Tell teller();
  /// Divides the inventory as it would be after these events; nothing changes.
  [[nodiscard]] std::vector<Partition> divided_after(const std::vector<Event>& events) const;
  /// The present, but never before the last event: the log stays in order when the clock is set back.
  double next_timestamp();

  Store& store_;
  Outbox& outbox_;
  std::function<double()> now_;
  Log log_;
  std::function<void(const IdSet&)> removed_;
  double last_timestamp_ = 0;
  double applied_at_ = 0;
  Module module_;
  Acquisition acquisition_;
  std::vector<PartitionRule> partitions_;
  Sequence applied_ = 0;
};

}  // namespace resourced::daemon
