// The state at the end of an event log: drained, changed and removed targets, named by host. The store
// has it as a snapshot, since the events of another program do not lead to a State.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/logged_targets.hpp"
#include "core/module/module.hpp"
#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"

namespace resourced::daemon::log {

class ImportedState {
 public:
  /// An expiration in the log counts as set in place of the configured one. `configured` has the hosts of
  /// ranks where the log does not name them; null for none.
  explicit ImportedState(WallTime configured_expiration,
                         std::shared_ptr<const rset::ResourceSet> configured = nullptr)
      : configured_expiration_(configured_expiration), configured_(std::move(configured)) {}

  /// Applies the next event of the log. Returns the hosts that it concerns, as far as the log names them.
  /// Throws Error EINVAL that names the key if the event changes the state of unknown hosts.
  text::Hostlist apply(const module::Event& event);

  /// Applies a resource-define, of which the log has only the method. A definition by `reload` may have
  /// loaded an R with targets that had left; a later event that names such a target shows it.
  void define(std::optional<module::DefineMethod> method);

  /// The state at the end, with all targets absent: a start finds them by name.
  [[nodiscard]] module::State finish() const;

  /// Whether the last restart has this target; true where none tells the hosts.
  [[nodiscard]] bool has(const module::TargetName& name) const {
    return targets_.present().empty() || targets_.rank_of(name).has_value();
  }
  /// How many targets are drained.
  [[nodiscard]] std::size_t drained() const { return states_.drains.ranks().count(); }
  /// Ranks whose hosts are those of the configured inventory.
  [[nodiscard]] const text::IdSet& assumed() const { return assumed_; }

 private:
  // Ranks may be renumbered between events, so targets have numbers of their own here. A start maps their
  // names to its ranks.
  using Numbers = text::IdSet;

  // The differences of one property from the configuration.
  struct Overlay {
    Numbers added;
    Numbers removed;
    // Targets whose first change since the last definition is known, so that the configured value is known.
    Numbers fresh;
    // Targets that were changed since the last definition by `reload`.
    Numbers since_load;

    void keep(const Numbers& numbers);
    void forget(const Numbers& numbers) { keep((added | removed | fresh) - numbers); }
  };

  // An allocation as its record has it, with the targets of its ranks.
  struct Allocated {
    module::SharedAllocation allocation;
    std::map<text::IdSet::Id, text::IdSet::Id> numbers;
  };
  // The targets of an allocation that a partial free names.
  [[nodiscard]] Numbers freed_of(const Allocated& allocated, const module::FreeEvent& event) const;
  [[nodiscard]] module::RecordedAllocation row_of(const Allocated& allocated) const;

  // An event with these numbers as ranks, as fold_states() takes it, and the hosts that it concerns.
  struct Translated {
    module::EventBody body;
    text::Hostlist hosts;
  };
  Translated translate(const module::RestartEvent& event);
  Translated translate(const module::DefineEvent& event);
  Translated translate(const module::UpdateEvent& event);
  Translated translate(const module::UnshrinkEvent& event);
  Translated translate(const module::DrainEvent& event);
  Translated translate(const module::UndrainEvent& event);
  Translated translate(const module::ScheduleEvent& event);
  Translated translate(const module::CancelEvent& event);
  // Changes `allocations_`.
  Translated translate(const module::AllocEvent& event);
  Translated translate(const module::FreeEvent& event);
  // A start does not restore online and torpid states, so their ranks are left out.
  template <class OfRanks>
  Translated translate(const OfRanks& event);

  // `named` has the hosts of the ranks if the event names them.
  rset::ResourceSet::Properties translate_properties(const char* key,
                                                     const rset::ResourceSet::Properties& properties,
                                                     const rset::ResourceSet& named);
  // Applies the changes that are not in `states_`: properties, expiration and shrink.
  void fold_update(const module::UpdateEvent& event, WallTime timestamp);
  void change_properties(const rset::ResourceSet::Properties& properties, bool present);
  // A loaded R has the targets of these hosts again, which had left. `hosts` is sorted.
  void take_back(const std::vector<std::string>& hosts);
  // Called when an event names this target, or only its host if the last restart did not have the target.
  void see(const module::TargetName& name);
  // Forgets the changes from before the last load of an R.
  void forget_before_load();

  // Throws Error EINVAL, with the key in front, unless the last restart or the configured inventory has the
  // hosts of these ranks, which the event does not name.
  void require_hosts(const std::string& key, const text::IdSet& ranks) const;
  // The target of a rank: of the last restart, otherwise of the configured inventory; nothing if neither has
  // it.
  [[nodiscard]] std::optional<module::TargetName> name_of(text::IdSet::Id rank) const;
  // The hosts of those ranks that the last restart had.
  [[nodiscard]] text::Hostlist known_hosts(const text::IdSet& ranks) const {
    return targets_.present().hosts(ranks);
  }
  // The targets of `ranks`, which are on the hosts of `nodelist`, or on those of the last restart or the
  // configured inventory if it is empty.
  Numbers numbers_of(const text::IdSet& ranks, const text::Hostlist& nodelist);
  text::IdSet::Id number_of(module::TargetName name);
  [[nodiscard]] module::TargetNames names_of(const Numbers& numbers) const;
  [[nodiscard]] text::Hostlist hosts_of(const Numbers& numbers) const { return names_of(numbers).hosts; }

  WallTime configured_expiration_;
  std::shared_ptr<const rset::ResourceSet> configured_;
  text::IdSet assumed_;
  module::LoggedTargets targets_;
  std::map<module::TargetName, text::IdSet::Id> numbers_;
  std::vector<module::TargetName> names_;
  module::TargetStates states_;
  std::map<std::string, Overlay> properties_;
  std::map<std::string, Allocated> allocations_;
  Numbers shrunk_;
  // Targets that left before the last definition by `reload`, which may have brought them back.
  Numbers reloadable_;
  std::optional<WallTime> expiration_;
  WallTime expiration_timestamp_{};
  bool is_expiration_since_load_ = false;
};

}  // namespace resourced::daemon::log
