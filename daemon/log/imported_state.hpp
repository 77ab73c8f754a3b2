// The state at the end of an imported event log: drained, changed and removed targets, named by host. The
// store gets it as a snapshot, since the events of another program do not lead to a State.
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
  /// An expiration in the log counts as set in place of `configured_expiration`. `configured` has the hosts
  /// of ranks that the log does not name; null for none.
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

  /// Whether the last restart event of the log has this target; true if no restart event names hosts.
  [[nodiscard]] bool has(const module::TargetName& name) const {
    return targets_.present().empty() || targets_.rank_of(name).has_value();
  }
  /// The number of drained targets, without those that left for good.
  [[nodiscard]] std::size_t drained() const { return (states_.drains.ranks() - shrunk_).count(); }
  /// Ranks whose hosts were taken from the configured inventory.
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
  // Returns the targets of an allocation that a partial free names.
  [[nodiscard]] Numbers freed_of(const Allocated& allocated, const module::FreeEvent& event) const;
  // Returns the targets that an update adds to an allocation, with the ranks of those that it has there, and
  // with unused ones otherwise: ranks may have changed since.
  [[nodiscard]] rset::ResourceSet added_to(Allocated& allocated, const rset::ResourceSet& added);
  [[nodiscard]] module::RecordedAllocation row_of(const Allocated& allocated) const;

  // An event in the form that fold_states() takes, with numbers of targets in place of ranks, and its hosts.
  struct Translated {
    module::EventBody body;
    text::Hostlist hosts;
  };
  Translated translate(const module::RestartEvent& event);
  Translated translate(const module::DefineEvent& event);
  // The translations of these three also apply what `states_` does not have: properties, the expiration, and
  // which targets left.
  Translated translate(const module::ExpirationEvent& event);
  Translated translate(const module::PropertyEvent& event);
  Translated translate(const module::ShrinkEvent& event);
  Translated translate(const module::UnshrinkEvent& event);
  // Drops the states that wait for targets.
  Translated translate(const module::ForgetEvent& event);
  // The translations of events of the ledger change `allocations_`.
  Translated translate(const module::AllocEvent& event);
  Translated translate(const module::AllocUpdateEvent& event);
  Translated translate(const module::FreeEvent& event);
  // An event that has no hosts gets no ranks, as a start does not restore online and torpid states.
  template <class OfRanks>
  Translated translate(const OfRanks& event);

  // `named` has the hosts of the ranks, and is empty if the event does not name them.
  rset::ResourceSet::Properties translate_properties(const char* key,
                                                     const rset::ResourceSet::Properties& properties,
                                                     const rset::ResourceSet& named);
  void change_properties(const rset::ResourceSet::Properties& properties, bool present);
  // Takes targets back that had left, as a loaded R has their hosts again. `hosts` is sorted.
  void take_back(const std::vector<std::string>& hosts);
  // Called when an event names this target, or only its host if the last restart did not have the target.
  void see(const module::TargetName& name);
  // Forgets the changes from before the last load of an R.
  void forget_before_load();

  // Throws Error EINVAL, with the key in front, unless the last restart or the configured inventory has the
  // hosts of these ranks, which the event does not name.
  void require_hosts(const std::string& key, const text::IdSet& ranks) const;
  // Returns the target of a rank by the last restart event, otherwise by the configured inventory; nothing if
  // neither has the rank.
  [[nodiscard]] std::optional<module::TargetName> name_of(text::IdSet::Id rank) const;
  // Returns the numbers of the targets of `ranks`, on the hosts of `nodelist`. If that is empty, their hosts
  // are those of the last restart event or of the configured inventory.
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
  std::map<module::AllocationName, Allocated> allocations_;
  Numbers shrunk_;
  // Targets that left before the last definition by `reload`, which may have brought them back.
  Numbers reloadable_;
  std::optional<WallTime> expiration_;
  WallTime expiration_timestamp_{};
  bool is_expiration_since_load_ = false;
};

}  // namespace resourced::daemon::log
