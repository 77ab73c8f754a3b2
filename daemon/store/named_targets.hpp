// Targets that a request for the journal names. The reading thread of the store looks them up, since a text
// of some hundred thousand bytes takes milliseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

/// Targets as a user names them: ranks of the inventory, or hosts, also such as have left it.
/// Throws Error EINVAL as parse_known_targets() does.
[[nodiscard]] EventTargets event_targets(std::string_view text, std::shared_ptr<const ResourceSet> inventory);

/// The bytes that the filters of one follower take. Atomic, as the loop and the reading thread change it.
using FilterBytes = std::atomic<std::size_t>;

class NamedTargets {
 public:
  /// Bytes besides the text: the set of ranks, and the object itself.
  static constexpr std::size_t envelope = 4096;

  /// Adds the bytes of this object to `taken` for as long as it lives.
  NamedTargets(std::string text, std::shared_ptr<const ResourceSet> inventory,
               std::shared_ptr<FilterBytes> taken);
  ~NamedTargets();
  NamedTargets(const NamedTargets&) = delete;
  NamedTargets& operator=(const NamedTargets&) = delete;
  NamedTargets(NamedTargets&&) = delete;
  NamedTargets& operator=(NamedTargets&&) = delete;

  [[nodiscard]] const std::shared_ptr<const ResourceSet>& inventory() const noexcept { return inventory_; }

  /// Looks the targets up and drops the text; later calls do nothing. All calls come from one thread.
  void find();
  /// The targets, or the error of a text that was refused. To be called only after find() has returned, from
  /// any thread that has been told so. targets() requires that there is no error.
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

}  // namespace resourced::daemon::store
