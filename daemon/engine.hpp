// The way through, for everything that changes: decide, apply, store, outbox. It owns the state and numbers
// the events; who asked and over which transport is not its business.
#pragma once

#include <cstddef>
#include <functional>

#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "daemon/outbox.hpp"
#include "daemon/record.hpp"
#include "daemon/store.hpp"

namespace resourced::daemon {

class Engine {
 public:
  /// `now` gives seconds since the Unix epoch.
  Engine(Store& store, Outbox& outbox, std::function<double()> now);

  /// Takes up what was recorded, on the inventory of today.
  void start(const StartCommand& command);

  /// Carries out a command. What it causes is applied when this returns and durable once applied() is
  /// committed. Throws Error if the command is refused.
  void execute(const Command& command);

  /// The last event that was applied: answers about the present state may leave once it is on disk.
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }

  [[nodiscard]] const Module& module() const noexcept { return module_; }
  [[nodiscard]] Acquisition& acquisition() noexcept { return acquisition_; }

 private:
  Record apply(const Event& event);

  Store& store_;
  Outbox& outbox_;
  std::function<double()> now_;
  Module module_;
  Acquisition acquisition_;
  Sequence applied_ = 0;
};

}  // namespace resourced::daemon
