// The resource module behind one function, which takes an input and returns its effects. The engine reads no
// clock, file or socket and calls nothing back: its owner carries the effects out, in the order that
// `Effects` states.
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

/// The first step: defines the present inventory, applies the recorded state to it, and divides it by these
/// rules.
struct Start {
  StartCommand command;
  std::vector<PartitionRule> partitions;
};

/// Replaces the inventory by another one, divided by these rules. Requires that there are no holders.
struct Load {
  LoadCommand command;
  std::vector<PartitionRule> partitions;
};

/// A scheduler acquires a partition, or without a name all targets that are in no partition (RFC 28).
/// Requires a defined inventory.
struct Acquire {
  HolderId holder = 0;
  std::optional<std::string> partition;
};

/// Releases the targets of a holder. Targets that it kept from other holders come up for those. An unknown
/// holder is ignored.
struct Release {
  HolderId holder = 0;
};

/// Sends no further changes to the present holders.
struct Mute {};

using Input = std::variant<Start, Load, Command, Acquire, Release, Mute>;

/// A change for one holder.
struct Update {
  /// The last event whose changes it contains.
  Sequence after = 0;
  HolderId holder = 0;
  Delta delta;
};

/// The effects of one input.
struct Effects {
  /// The events that were applied, in order. They go to the log first, one after the other: a crash may keep
  /// the first of them and lose the rest. Nothing that tells of an event, or of the state after it, may leave
  /// before the log has that event.
  std::vector<Record> records;
  /// Changes for holders, in order. Each may leave once the log has its event `after`.
  std::vector<Update> updates;
  /// Targets that left for good, whose agents are to be ended. May be carried out at any time after the
  /// records.
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
  /// `last` and `last_timestamp` (seconds since the Unix epoch) are those of the last event in the log; 0 and
  /// 0 for an empty log.
  explicit Engine(Sequence last = 0, double last_timestamp = 0)
      : last_timestamp_(last_timestamp), applied_(last) {}

  /// Takes one input at a time `now`, in seconds since the Unix epoch. Throws Error, and nothing has changed,
  /// if the input is refused: EAGAIN for a command before the inventory is known, EINVAL for partitions that
  /// would overlap, and what Module::decide() and Acquisition::acquire() throw.
  [[nodiscard]] Effects step(const Input& input, double now);

  /// The last event that was applied: answers about the present state may leave once it is in the log.
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }
  /// The timestamp of that event.
  [[nodiscard]] double applied_at() const noexcept { return last_timestamp_; }

  [[nodiscard]] const Module& module() const noexcept { return module_; }
  [[nodiscard]] const Acquisition& acquisition() const noexcept { return acquisition_; }

 private:
  void take(const Start& input, double time, Effects& effects);
  void take(const Load& input, double time, Effects& effects);
  void take(const Command& command, double time, Effects& effects);
  void take(const Acquire& input, double time, Effects& effects);
  void take(const Release& input, double time, Effects& effects);
  void take(const Mute& input, double time, Effects& effects);

  void apply(Event event, Effects& effects);
  [[nodiscard]] Acquisition::Tell teller(Effects& effects);
  /// Divides the inventory as it would be after these events; nothing changes.
  [[nodiscard]] std::vector<Partition> divided_after(const std::vector<Event>& events) const;

  /// The timestamp of the last event in the log. No later event has an earlier one, so the log stays in order
  /// when the clock is set back.
  double last_timestamp_;
  Module module_;
  Acquisition acquisition_;
  std::vector<PartitionRule> partitions_;
  Sequence applied_;
};

}  // namespace resourced::engine
