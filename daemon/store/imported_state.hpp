// The present as an event log tells it: what is drained, changed and gone at its end, by target of a host.
// The store has it from there as if this daemon had recorded the events itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/fold.hpp"
#include "core/module/logged_targets.hpp"
#include "core/module/target_names.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

class ImportedState {
 public:
  /// An expiration of the log is taken to be in the place of the configured one.
  explicit ImportedState(WallTime configured_expiration) : configured_expiration_(configured_expiration) {}

  /// Takes up the next event of the log. Returns the hosts that it concerns, as far as the log tells them.
  /// Throws Error EINVAL that names the key if the event changes something of hosts that are not known.
  text::Hostlist apply(const module::Event& event);

  /// The inventory was defined anew; the log has the method alone. A definition by `reload` may be the load
  /// of another R with targets that had left: a later event that names such a target shows it.
  void define(std::optional<module::DefineMethod> method);

  /// Adds the present to the last record of the log.
  void finish(Record& last) const;

  /// How many targets are drained.
  [[nodiscard]] std::size_t drained() const { return states_.drains.ranks().count(); }

 private:
  // Ranks may be renumbered between events, so targets have numbers of their own here; a start maps them to
  // the ranks of that day.
  using Numbers = text::IdSet;

  // One property against the configuration.
  struct Overlay {
    Numbers added;
    Numbers removed;
    // Of these the first change since the last definition is known: it tells what is configured.
    Numbers fresh;
    // Targets that were changed since the last definition by `reload`.
    Numbers since_load;

    void keep(const Numbers& numbers);
    void forget(const Numbers& numbers) { keep((added | removed | fresh) - numbers); }
  };

  // An event in the own numbers, as fold_states() takes it, and the hosts that it concerns.
  struct Translated {
    module::EventBody body;
    text::Hostlist hosts;
  };
  Translated translate(const module::RestartEvent& event);
  Translated translate(const module::DefineEvent& event);
  Translated translate(const module::UpdateEvent& event);
  Translated translate(const module::DrainEvent& event);
  Translated translate(const module::UndrainEvent& event);
  // A start takes up no states online and torpid, so their ranks are left out.
  template <class OfRanks>
  Translated translate(const OfRanks& event);

  // `named` has the hosts of the ranks as the event tells them, if it does.
  rset::ResourceSet::Properties translate_properties(const char* key,
                                                     const rset::ResourceSet::Properties& properties,
                                                     const rset::ResourceSet& named);
  // Folds what states do not have: the differences from a configuration that the log does not tell.
  void fold_update(const module::UpdateEvent& event, WallTime timestamp);
  void change_properties(const rset::ResourceSet::Properties& properties, bool present);
  // Another R with the targets of these hosts that had left, in order, was loaded.
  void take_back(const std::vector<std::string>& hosts);
  // An event names this target, or the host alone where the last restart had no such target of it.
  void see(const module::TargetName& name);
  // Another R was loaded: forgets changes of the one before.
  void forget_before_load();
  // Those of the targets with recorded drains or properties that are there.
  [[nodiscard]] Numbers recorded_present() const;

  // Whether the last restart told the hosts of these ranks.
  [[nodiscard]] bool knows(const text::IdSet& ranks) const {
    return targets_.present().ranks().includes(ranks);
  }
  // The hosts of those ranks that the last restart had.
  [[nodiscard]] text::Hostlist known_hosts(const text::IdSet& ranks) const {
    return targets_.present().hosts(ranks);
  }
  // The targets behind ranks, which had these hosts; without hosts those of the last restart.
  Numbers numbers_of(const text::IdSet& ranks, const text::Hostlist& nodelist);
  text::IdSet::Id number_of(module::TargetName name);
  [[nodiscard]] module::TargetNames names_of(const Numbers& numbers) const;
  [[nodiscard]] text::Hostlist hosts_of(const Numbers& numbers) const { return names_of(numbers).hosts; }

  WallTime configured_expiration_;
  module::LoggedTargets targets_;
  std::map<module::TargetName, text::IdSet::Id> numbers_;
  std::vector<module::TargetName> names_;
  module::TargetStates states_;
  std::map<std::string, Overlay> properties_;
  Numbers shrunk_;
  // Targets that left before the last definition by `reload`, which may have brought them back.
  Numbers reloadable_;
  std::optional<WallTime> expiration_;
  WallTime expiration_timestamp_{};
  bool is_expiration_since_load_ = false;
};

}  // namespace resourced::daemon::store
