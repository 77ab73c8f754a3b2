// A second implementation of the events of a log (RFC 44), as simple as possible: sets of target names,
// folded from the JSON that consumers of the journal get. Uses no code of the module.
#pragma once

#include <compare>
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

  /// The next event belongs to a start with this configuration.
  void begin(const Configuration& configuration);
  /// The next event is a definition with these ranks excluded, which an event does not tell.
  void exclude(const std::set<unsigned>& ranks);
  /// The next event is the definition of another R that was loaded, with these hosts by rank: states follow
  /// their targets, all others come from the R.
  void load(const std::vector<std::string>& hosts, const nlohmann::json& resources);
  /// The configuration has replaced the R that was loaded, whose own properties are gone with it.
  void unload();
  void apply(const nlohmann::json& event);

  /// Ranks of the present start.
  [[nodiscard]] Ranks present() const;
  [[nodiscard]] Ranks available() const;
  [[nodiscard]] Ranks online() const { return ranks(online_); }
  [[nodiscard]] Ranks torpid() const { return ranks(torpid_); }
  [[nodiscard]] Ranks excluded() const { return ranks(excluded_); }
  [[nodiscard]] std::map<unsigned, std::string> drained() const;
  [[nodiscard]] std::map<std::string, Ranks> properties() const;
  [[nodiscard]] double expiration() const { return expiration_; }

 private:
  [[nodiscard]] Ranks ranks(const std::set<Name>& names) const;
  [[nodiscard]] std::set<Name> names(const std::string& idset) const;
  /// Where the targets that are present are among these, which take the place of the former.
  [[nodiscard]] std::map<Name, Name> moved_to(const std::vector<Name>& next) const;
  void define();
  void drain(const nlohmann::json& context);

  std::vector<Name> names_;
  std::set<Name> excluded_;
  std::set<Name> online_;
  std::set<Name> torpid_;
  std::set<Name> shrunk_;
  std::map<Name, std::string> drained_;
  std::set<std::pair<std::string, Name>> properties_;
  std::set<std::pair<std::string, Name>> loaded_properties_;
  double expiration_ = 0;
};

/// The ids of an idset such as "0-3,7" (RFC 22).
[[nodiscard]] Reference::Ranks parse_ranks(const std::string& idset);

/// An object of properties and their idsets (RFC 20); empty if there is none under this key.
[[nodiscard]] std::map<std::string, std::string> property_sets(const nlohmann::json& object, const char* key);

}  // namespace resourced::sim
