// The resource module behind one function: an input goes in, its effects come out. Nothing here reads a
// clock, a file or a socket, and nothing is called back: whoever owns the engine carries the effects out, in
// the order that `Effects` states.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/engine/record.hpp"
#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/module/partition.hpp"

namespace resourced::engine {

using HolderId = Acquisition::HolderId;

/// The first step: the inventory of today, with what was recorded before, divided by these rules.
struct Start {
  StartCommand command;
  std::vector<PartitionRule> partitions;
};

/// Another inventory in the place of the present one, divided by these rules. Requires that nobody holds
/// resources.
struct Load {
  LoadCommand command;
  std::vector<PartitionRule> partitions;
};

/// A scheduler acquires a partition, or without a name all that no partition names (RFC 28). Requires a
/// defined inventory.
struct Acquire {
  HolderId holder = 0;
  std::optional<std::string> partition;
};

/// A holder lets go; others may get what it had kept from them. One that holds nothing is passed over.
struct Release {
  HolderId holder = 0;
};

/// All who hold now hear of no more changes.
struct Mute {};

using Input = std::variant<Start, Load, Command, Acquire, Release, Mute>;

/// A change for one holder.
struct Update {
  /// The last event that it tells of.
  Sequence after = 0;
  HolderId holder = 0;
  Delta delta;
};

/// What follows from one input.
struct Effects {
  /// The events that were applied, in order. They go to the log first and as one batch. Nothing that tells of
  /// one of them, or of the state after it, may leave before the log has it.
  std::vector<Record> records;
  /// For holders, in order. Each may leave once the log has its event `after`.
  std::vector<Update> updates;
  /// Targets that left for good: nobody speaks for them any more. At any time after the records.
  IdSet removed;
  /// For an Acquire: its targets, and those of them that no other holder keeps (Acquisition::Acquired). The
  /// response may leave once the log has the event applied().
  struct Acquired {
    IdSet resources;
    IdSet kept;
  };
  std::optional<Acquired> acquired;
};

class Engine {
 public:
  /// On a log whose last event has this number and this time (seconds since the Unix epoch); 0 and 0 for an
  /// empty one.
  explicit Engine(Sequence last = 0, double last_timestamp = 0)
      : last_timestamp_(last_timestamp), applied_(last) {}

  /// Takes one input at a time `now`, in seconds since the Unix epoch. Throws Error, and nothing has changed,
  /// if the input is refused: EAGAIN for a command before the inventory is known, EINVAL for partitions that
  /// would overlap, and what Module::decide() and Acquisition::acquire() throw.
  [[nodiscard]] Effects step(const Input& input, double now);

  /// The last event that was applied: answers about the present state may leave once it is in the log.
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }
  /// The timestamp of the last event that this engine applied; 0 before the first.
  [[nodiscard]] double applied_at() const noexcept { return applied_at_; }

  [[nodiscard]] const Module& module() const noexcept { return module_; }
  [[nodiscard]] const Acquisition& acquisition() const noexcept { return acquisition_; }

 private:
  void take(const Start& input, Effects& effects);
  void take(const Load& input, Effects& effects);
  void take(const Command& command, Effects& effects);
  void take(const Acquire& input, Effects& effects);
  void take(const Release& input, Effects& effects);
  void take(const Mute& input, Effects& effects);

  void apply(Event event, Effects& effects);
  [[nodiscard]] Acquisition::Tell teller(Effects& effects);
  /// Divides the inventory as it would be after these events; nothing changes.
  [[nodiscard]] std::vector<Partition> divided_after(const std::vector<Event>& events) const;

  /// The time of the present step, but never before the last event: the log stays in order when the clock is
  /// set back.
  double last_timestamp_;
  double applied_at_ = 0;
  Module module_;
  Acquisition acquisition_;
  std::vector<PartitionRule> partitions_;
  Sequence applied_;
};

}  // namespace resourced::engine
