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
  void define(module::DefineMethod method);

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

  // A property of a target that differs from the configuration.
  struct Change {
    bool present;
    // Whether this is the first change since the last definition, so that the configured value is known.
    bool is_fresh = true;
    // Whether there was a change since the last definition by `reload`.
    bool since_load = true;
  };

  // Apply an event, and return its hosts. A restart drops no drains: those of targets that it does not have
  // wait for these targets, as in the daemon.
  text::Hostlist take(const module::RestartEvent& body, const module::Event& event);
  text::Hostlist take(const module::ExpirationEvent& body, const module::Event& event);
  text::Hostlist take(const module::PropertyEvent& body, const module::Event& event);
  text::Hostlist take(const module::ShrinkEvent& body, const module::Event& event);
  text::Hostlist take(const module::UnshrinkEvent& body, const module::Event& event);
  text::Hostlist take(const module::ForgetEvent& body, const module::Event& event);
  text::Hostlist take(const module::AllocEvent& body, const module::Event& event);
  text::Hostlist take(const module::AllocUpdateEvent& body, const module::Event& event);
  text::Hostlist take(const module::FreeEvent& body, const module::Event& event);
  // Folds any other event. One that has no hosts changes nothing here: a start does not restore online and
  // torpid states, and define() takes definitions.
  template <class OfRanks>
  text::Hostlist take(const OfRanks& body, const module::Event& event);

  void change_property(const std::string& name, text::IdSet::Id number, bool present);
  // Forgets the changes of properties of these targets.
  void forget_properties(const Numbers& targets);
  // Called when an event names this target, or only its host if the last restart did not have the target.
  void see(const module::TargetName& name);
  // Forgets the changes from before the last load of an R.
  void forget_before_load();
  // Returns resources with the numbers of their targets in place of ranks. Two ranks that the log does not
  // distinguish get two numbers.
  rset::ResourceSet in_numbers(const rset::ResourceSet& resources);
  // Returns the targets of an allocation that a partial free names.
  [[nodiscard]] Numbers freed_of(const module::Allocation& allocation, const module::FreeEvent& event) const;

  // Throws Error EINVAL, with the key in front, unless the last restart or the configured inventory has the
  // hosts of these ranks, which the event does not name.
  void require_hosts(const std::string& key, const text::IdSet& ranks) const;
  // Returns the target of a rank by the last restart event, otherwise by the configured inventory; nothing if
  // neither has the rank.
  [[nodiscard]] std::optional<module::TargetName> name_of(text::IdSet::Id rank) const;
  // Returns the numbers of the targets of `ranks`, on the hosts of `nodelist`. If that is empty, their hosts
  // are those of the last restart event or of the configured inventory.
  Numbers numbers_of(const text::IdSet& ranks, const text::Hostlist& nodelist);
  // Returns the known targets of a host.
  [[nodiscard]] Numbers numbers_on(const std::string& host) const;
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
  std::map<std::pair<std::string, text::IdSet::Id>, Change> properties_;
  // The allocations, with numbers of targets in place of ranks.
  std::map<module::AllocationName, module::Allocation> allocations_;
  Numbers shrunk_;
  // Targets that left before the last definition by `reload`, which may have brought them back.
  Numbers reloadable_;
  std::optional<module::RunTimeExpiration> expiration_;
  bool is_expiration_since_load_ = false;
};

}  // namespace resourced::daemon::log
