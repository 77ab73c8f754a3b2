// Conditions that a client may wait for: its targets are idle, or ready for work. They are pure functions of
// the present state; the daemon keeps the requests.
#pragma once

#include <cstdint>
#include <string>

#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

enum class WaitCondition : std::uint8_t {
  /// No target has an allocation. Requires that a scheduler reports the allocations there.
  idle,
  /// All targets are online, and their health checks have passed where they have any.
  ready,
  /// The allocations of all targets are reported.
  reported,
};

/// How a wait for `idle` or `reported` treats targets whose allocations nobody reports
/// (WaitedState::unreported()).
enum class Unreported : std::uint8_t {
  /// The request is refused if it has such a target. If the target's scheduler leaves later, the wait goes on
  /// until another one reports.
  refuse,
  /// The wait lasts until a scheduler reports. This is for a client that repeats its request after a restart
  /// of the daemon, when schedulers have yet to come back.
  wait,
  /// The ledger alone counts: a target without an allocation is idle.
  assume_idle,
};

struct Wait {
  text::IdSet targets;
  WaitCondition condition = WaitCondition::idle;
  Unreported unreported = Unreported::refuse;
};

/// The present state as waits need it. Make it once for many waits.
class WaitedState {
 public:
  /// `unchecked` are targets whose health check has not passed. `jobs` are the targets where jobs of a Flux
  /// instance run, null while they are not known; they do not count without an instance.
  WaitedState(const Module& module, const Acquisition& acquisition, const text::IdSet& unchecked,
              const text::IdSet* jobs = nullptr);

  [[nodiscard]] bool meets(const Wait& wait) const;
  /// Returns the targets whose allocations nobody reports: no scheduler, nor a Flux instance's job manager.
  [[nodiscard]] const text::IdSet& unreported() const noexcept { return unreported_; }

 private:
  const text::IdSet& allocated_;
  const text::IdSet* jobs_ = nullptr;
  text::IdSet unreported_;
  text::IdSet ready_;
};

/// Returns `nobody reports what runs on node[0-1]`. Of very many hosts it names only the first.
[[nodiscard]] std::string unreported_text(const text::IdSet& targets, const rset::ResourceSet& inventory);

}  // namespace resourced::module
