// A second implementation of the events of a log (RFC 44), as simple as possible: sets of target names,
// computed from the JSON that consumers of the journal receive. Uses no code of core/module.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::sim {

/// The configuration of a start: the host of each rank, where hosts may repeat, and the excluded ranks.
struct Configuration {
  std::vector<std::string> hosts;
  std::set<unsigned> exclude;
};

class Reference {
 public:
  /// A target, by its host and its ordinal among the targets of that host.
  struct Name {
    std::string host;
    unsigned ordinal = 0;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  using Ranks = std::set<unsigned>;

  /// `returns`: the daemon may end the drains that it or an agent began.
  explicit Reference(bool returns = false) : returns_(returns) {}

  /// The next event belongs to a start with this configuration.
  void begin(const Configuration& configuration);
  /// The next event is a definition with these ranks excluded, which the event does not contain.
  void exclude(const std::set<unsigned>& ranks);
  /// The next event is the definition of another R that was loaded, with these hosts by rank: states follow
  /// their targets, everything else comes from the R.
  void load(const std::vector<std::string>& hosts, const nlohmann::json& resources);
  /// The configuration has replaced the loaded R; removes the properties of that R.
  void unload();
  /// Throws std::runtime_error for an event that cannot follow, such as an undrain by the daemon or an agent
  /// of a target that an operator has drained.
  void apply(const nlohmann::json& event);

  /// The number of the targets of the present start, those that have left included.
  [[nodiscard]] std::size_t targets() const { return names_.size(); }
  /// Ranks of the present start.
  [[nodiscard]] Ranks present() const;
  [[nodiscard]] Ranks present_on(const std::string& host) const;
  [[nodiscard]] Ranks available() const;
  [[nodiscard]] Ranks online() const { return ranks(online_); }
  [[nodiscard]] Ranks torpid() const { return ranks(torpid_); }
  [[nodiscard]] Ranks excluded() const { return ranks(excluded_); }
  [[nodiscard]] std::map<unsigned, std::string> drained() const;
  /// The drains that begin later by their begins, as resource.status has each of them.
  using Schedules = std::map<double, nlohmann::json>;
  [[nodiscard]] std::map<unsigned, Schedules> scheduled() const;
  [[nodiscard]] std::map<std::string, Ranks> properties() const;
  [[nodiscard]] double expiration() const { return expiration_; }
  /// The cores that each allocation holds, by host. A host may stand for several targets. An allocation is
  /// known by its partition and its id.
  using Cores = std::multiset<std::pair<std::string, unsigned>>;
  using Allocations = std::map<std::pair<std::string, std::string>, Cores>;
  [[nodiscard]] const Allocations& allocations() const { return allocations_; }
  /// When allocations should have been freed, of those for which that is set.
  using Expirations = std::map<std::pair<std::string, std::string>, double>;
  [[nodiscard]] const Expirations& expirations() const { return expirations_; }

 private:
  [[nodiscard]] Ranks ranks(const std::set<Name>& names) const;
  [[nodiscard]] std::set<Name> names(const std::string& idset) const;
  /// Maps the names of the present targets to their names in `next`, the hosts that replace the present ones.
  [[nodiscard]] std::map<Name, Name> moved_to(const std::vector<Name>& next) const;
  /// Takes over what is known of targets that have not moved here.
  void wait_for_hosts(const Reference& before, const std::map<Name, Name>& moved);
  void define();
  void drain(const nlohmann::json& context, double now);
  void erase_scheduled(const Name& name, double begin);
  /// Throws if the next scheduled drain of a target cannot begin by this event.
  void begin_scheduled(const Name& name, const nlohmann::json& context, double now);
  void undrain(const nlohmann::json& context, double now);
  void schedule(const nlohmann::json& context);
  void cancel(const nlohmann::json& context, double now);
  void forget(const nlohmann::json& context);
  void alloc(const nlohmann::json& context);
  void update_allocation(const nlohmann::json& context);
  /// Adds the cores of an R to those of an allocation.
  void hold(const nlohmann::json& resources, Cores& cores);
  /// Sets or, with 0, removes the expiration of an allocation, if the object has one.
  void expire(const std::pair<std::string, std::string>& name, const nlohmann::json& object);
  void free(const nlohmann::json& context, double now);

  std::vector<Name> names_;
  std::set<Name> excluded_;
  std::set<Name> online_;
  std::set<Name> torpid_;
  std::set<Name> shrunk_;
  /// Those that have been away, and are drained again with the next definition.
  std::set<Name> returned_;
  std::map<Name, std::string> drained_;
  /// Those of them whose present reason was not given by an operator.
  std::set<Name> drained_by_daemon_;
  /// When drains end by themselves.
  std::map<Name, double> ends_;
  std::map<Name, Schedules> scheduled_;
  bool returns_ = false;
  std::set<std::pair<std::string, Name>> properties_;
  std::set<std::pair<std::string, Name>> loaded_properties_;
  double expiration_ = 0;
  Allocations allocations_;
  Expirations expirations_;
};

/// The ids of an idset such as "0-3,7" (RFC 22).
[[nodiscard]] Reference::Ranks parse_ranks(const std::string& idset);

/// The properties under this key with their idsets (RFC 20); empty if the key is missing.
[[nodiscard]] std::map<std::string, std::string> property_sets(const nlohmann::json& object, const char* key);

}  // namespace resourced::sim
