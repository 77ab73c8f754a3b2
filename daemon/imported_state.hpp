// The present as an event log tells it: what is drained, changed and gone at its end, by host. The store has
// it from there as if this daemon had recorded the events itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/module/drain_table.hpp"
#include "core/module/event.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "daemon/record.hpp"

namespace resourced::daemon {

class ImportedState {
 public:
  /// An expiration of the log is taken to be in the place of the configured one.
  explicit ImportedState(double configured_expiration) : configured_expiration_(configured_expiration) {}

  /// Takes up the next event of the log. Returns the hosts that it concerns, as far as the log tells them.
  /// Throws Error EINVAL that names the key if the event changes something of hosts that are not known.
  Hostlist apply(const Event& event);

  /// The inventory was defined anew, of which the log has no more than that.
  void define();

  /// Adds the present to the last record of the log.
  void finish(Record& last) const;

  /// How many hosts are drained.
  [[nodiscard]] std::size_t drained() const { return drains_.ranks().count(); }

 private:
  // Ranks may be renumbered between events, so hosts have numbers of their own here; a start maps them to the
  // ranks of that day.
  using Numbers = IdSet;

  // One property against the configuration.
  struct Overlay {
    Numbers added;
    Numbers removed;
    // Of these the first change since the last definition is known: it tells what is configured.
    Numbers fresh;
  };

  Hostlist apply_to(const RestartEvent& event);
  Hostlist apply_to(const DefineEvent& event);
  Hostlist apply_to(const UpdateEvent& event);
  Hostlist apply_to(const DrainEvent& event);
  Hostlist apply_to(const UndrainEvent& event);
  template <class OfRanks>
  Hostlist apply_to(const OfRanks& event);

  // Hosts in the order of their ranks.
  struct RankHosts {
    [[nodiscard]] bool knows(const IdSet& some) const;
    // The hosts of those ranks that stand here.
    [[nodiscard]] Hostlist of(const IdSet& some) const;

    IdSet ranks;
    Hostlist hosts;
  };

  Numbers change_properties(const char* key, const ResourceSet::Properties& properties,
                            const RankHosts& where, bool present);
  void keep_only(const Hostlist& hosts);

  [[nodiscard]] Hostlist hosts_of(const IdSet& ranks, const Hostlist& nodelist) const;
  Numbers numbers_of(const Hostlist& hosts);
  [[nodiscard]] Hostlist hosts_of_numbers(const Numbers& numbers) const;

  double configured_expiration_;
  // As of the last restart.
  RankHosts present_;
  std::map<std::string, IdSet::Id, std::less<>> numbers_;
  std::vector<std::string> names_;
  DrainTable drains_;
  std::map<std::string, Overlay> properties_;
  Numbers shrunk_;
  std::optional<double> expiration_;
  double timestamp_ = 0;
};

}  // namespace resourced::daemon
