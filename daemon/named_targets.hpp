// Targets as a request for the journal names them. A text of some hundred thousand bytes takes milliseconds
// to look up, so the store's reader does that, and the loop only hands the text over.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/journal_source.hpp"

namespace resourced::daemon {

/// The bytes that one follower's filters take, in whichever threads.
using FilterBytes = std::atomic<std::size_t>;

class NamedTargets {
 public:
  /// What one takes besides its text: the set of ranks, and itself.
  static constexpr std::size_t envelope = 4096;

  /// `taken` counts what this takes until the end of its life.
  NamedTargets(std::string text, std::shared_ptr<const ResourceSet> inventory,
               std::shared_ptr<FilterBytes> taken);
  ~NamedTargets();
  NamedTargets(const NamedTargets&) = delete;
  NamedTargets& operator=(const NamedTargets&) = delete;
  NamedTargets(NamedTargets&&) = delete;
  NamedTargets& operator=(NamedTargets&&) = delete;

  [[nodiscard]] const std::shared_ptr<const ResourceSet>& inventory() const noexcept { return inventory_; }

  /// Looks them up, the first time it is called, and drops the text. Always to be called by the same thread.
  void find();
  /// What was found, or why they were refused (null: they were not). After find(), by any thread that knows
  /// that it has returned.
  [[nodiscard]] const EventTargets& targets() const { return *targets_; }
  [[nodiscard]] const std::optional<Error>& refusal() const noexcept { return refusal_; }

 private:
  void take(std::size_t size);

  std::optional<std::string> text_;
  std::shared_ptr<const ResourceSet> inventory_;
  std::shared_ptr<FilterBytes> taken_;
  std::size_t size_ = 0;
  std::optional<EventTargets> targets_;
  std::optional<Error> refusal_;
};

}  // namespace resourced::daemon
