// The resource set R, version 1 (RFC 20): which cores and gpus each execution target (rank) controls, the
// host of each target, properties and times. Both editions of RFC 20 are read; the current one is written. A
// ResourceSet is a value that is cheap to copy: ranks, groups, hosts and carried keys are shared and never
// changed in place, so threads may read and destroy copies of their own at the same time. Set algebra is in
// operations.hpp, targets by name in targets.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::json_text {
class JsonReader;
}

#pragma GCC visibility push(default)
namespace resourced::rset {

class [[gnu::visibility("hidden")]] DocumentReader;
class [[gnu::visibility("hidden")]] TargetTable;
struct CarriedKeys;

struct ResourceCounts {
  std::uint64_t nodes = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  friend bool operator==(const ResourceCounts&, const ResourceCounts&) = default;
};

/// Ranks with the same resources: one entry of R_lite.
struct ResourceGroup {
  text::IdSet ranks;
  text::IdSet cores;
  text::IdSet gpus;
  /// Keys that RFC 20 does not know, passed through: an object with the members `entry` (beside `rank`) and
  /// `children` (beside `core`), each left out when empty. Null when there are none.
  std::shared_ptr<const nlohmann::json> extra = nullptr;
};

/// Result of a look-up of a list of hosts in a set.
struct HostSearch {
  text::IdSet ranks;
  /// The hosts that the set lacks, in the order of the list, repeats included.
  std::vector<std::string> unknown;
};

class ResourceSet {
 public:
  using Properties = std::map<std::string, text::IdSet, std::less<>>;

  /// Maximum number of characters that parse() reads, and maximum nesting of objects and arrays in a
  /// document: `scheduling`, `attributes` and unknown keys nest at most 64 levels, those of an entry of
  /// R_lite 63. Messages, which contain documents, nest deeper (proto::max_json_depth).
  static constexpr std::size_t max_text = std::size_t{1} << 28;
  static constexpr std::size_t max_depth = 65;
  /// Maximum number of ranks of a set, which bounds all work that follows the number of hosts.
  static constexpr std::size_t max_targets = std::size_t{1} << 24;

  ResourceSet() = default;
  /// Makes a set of the given resources in canonical form: groups with equal resources are merged, and the
  /// resources of a rank in several groups add up. The hosts are those of the sorted ranks. Throws Error
  /// EINVAL when the groups give a rank the same resource twice, a group is without ranks or resources, or
  /// the counts of ranks and hosts differ.
  ResourceSet(std::vector<ResourceGroup> groups, text::Hostlist hosts);

  /// Reads an R. Throws Error EINVAL that names the JSON path (`execution.R_lite[2].rank: ...`).
  [[nodiscard]] static ResourceSet parse(std::string_view text);
  [[nodiscard, gnu::visibility("hidden")]] static ResourceSet from_json(const nlohmann::json& document);
  /// Reads an R that is the next value of a larger text, within the bounds of its reader. Returns false if
  /// the text is not JSON. Throws Error EINVAL as parse() does for what the R says.
  [[nodiscard, gnu::visibility("hidden")]] static bool read(json_text::JsonReader& reader, ResourceSet& out);

  /// Write canonical R: equal children merged into one entry, ordered by first rank, one compressed hostlist.
  /// encode() writes the same content with the keys in the order in which RFC 20 lists them. Both throw Error
  /// EINVAL for a rank with gpus but no cores, which R cannot express.
  [[nodiscard]] std::string encode(bool with_scheduling = true) const;
  [[nodiscard, gnu::visibility("hidden")]] nlohmann::json to_json(bool with_scheduling = true) const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] const text::IdSet& ranks() const noexcept;
  /// Groups, ordered by first rank; no two have the same resources.
  [[nodiscard]] const std::vector<ResourceGroup>& groups() const noexcept;
  [[nodiscard]] const Properties& properties() const noexcept { return properties_; }
  /// Hosts in the order of the sorted ranks.
  [[nodiscard]] const text::Hostlist& nodelist() const noexcept;
  /// The start and the end of the resource set. The epoch means that the time is not set.
  [[nodiscard]] WallTime starttime() const noexcept { return starttime_; }
  [[nodiscard]] WallTime expiration() const noexcept { return expiration_; }
  /// Number of slots; only an allocation has one.
  [[nodiscard]] std::optional<std::uint64_t> nslots() const noexcept { return nslots_; }
  /// Returns the first key of `execution` that RFC 20 does not know and that the other set lacks or has with
  /// another value.
  [[nodiscard]] std::optional<std::string> unlike_execution_key(const ResourceSet& other) const;
  /// The text of the opaque `scheduling` object as it was read, without white space between its tokens; null
  /// if there is none.
  [[nodiscard]] const std::string* scheduling() const noexcept;

  [[nodiscard]] ResourceCounts counts() const;
  [[nodiscard]] ResourceCounts counts(const text::IdSet& ranks) const;

  /// Returns the hosts of these ranks in rank order; ranks that the set lacks are ignored.
  [[nodiscard]] text::Hostlist hosts(const text::IdSet& ranks) const;
  /// Whether hosts(ranks) are the hosts of this list.
  [[nodiscard]] bool has_hosts(const text::IdSet& ranks, const text::Hostlist& hosts) const;
  /// Returns the host of a rank. Throws Error EINVAL for a rank that the set lacks.
  [[nodiscard]] std::string host(text::IdSet::Id rank) const;
  /// Returns the rank of a target of a host: `ordinal` counts the ranks that share the host, from 0 for the
  /// lowest. Costs as HostIndex::find(); the first call builds an index, which the copies of this set share.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(std::string_view host,
                                                       std::uint32_t ordinal = 0) const;
  /// Returns the ordinal of a rank among those of its host: 0 where no host repeats.
  [[nodiscard]] std::uint32_t ordinal_of(text::IdSet::Id rank) const;
  /// Returns every rank of these hosts. The search ends at one unknown host more than `most_unknown`; its
  /// cost follows the ranges of the list and the size of this set, never the hosts that the list stands for.
  [[nodiscard]] HostSearch ranks_of(const text::Hostlist& hosts, std::size_t most_unknown) const;
  /// Whether a host is in the nodelist more than once.
  [[nodiscard]] bool hosts_repeat() const;
  /// Returns the position of a rank among the sorted ranks, which is its position in the nodelist.
  [[nodiscard]] std::optional<std::size_t> position_of(text::IdSet::Id rank) const;
  /// Returns the positions of several ranks; ranks that the set lacks are ignored.
  [[nodiscard]] text::IdSet positions_of(const text::IdSet& ranks) const;

  /// Returns a copy with only these ranks, and their hosts, properties and R_lite; `scheduling` is kept
  /// unchanged. Ranks that the set lacks are ignored. nslots counts for the whole allocation: it is kept only
  /// if every rank is.
  [[nodiscard]] ResourceSet copy_ranks(const text::IdSet& ranks) const;
  void remove_ranks(const text::IdSet& ranks);
  /// Returns a copy without instance-local properties (`+name`).
  [[nodiscard]] ResourceSet without_local_properties() const;

  /// Adds a property to ranks. Throws Error EINVAL for a name that RFC 20 does not allow or a rank that the
  /// set lacks.
  void add_property(std::string_view name, const text::IdSet& ranks);
  void remove_property(std::string_view name, const text::IdSet& ranks);
  /// Set a time. Both throw Error EINVAL for a time that is negative or not finite, or that breaks starttime
  /// < expiration.
  void set_starttime(WallTime time);
  void set_expiration(WallTime time);
  /// Sets the number of slots. Throws Error EINVAL for 0.
  void set_nslots(std::optional<std::uint64_t> nslots);
  /// Sets the `scheduling` object from its text. Throws Error EINVAL for anything but an object that is
  /// suitable for it.
  void set_scheduling(std::string_view text);

  /// Takes from another set the members that belong to no rank and that this set lacks: scheduling,
  /// attributes, keys that RFC 20 does not know; and the times, when this set has none.
  void inherit(const ResourceSet& from);

  /// Compares content: the text from which a set was read does not matter.
  friend bool operator==(const ResourceSet& a, const ResourceSet& b);

 private:
  friend class DocumentReader;

  [[nodiscard]] const TargetTable& table() const noexcept;
  void check_ranks(std::string_view name, const text::IdSet& ranks) const;

  std::shared_ptr<const TargetTable> table_;
  std::shared_ptr<const CarriedKeys> carried_;
  Properties properties_;
  WallTime starttime_{};
  WallTime expiration_{};
  std::optional<std::uint64_t> nslots_;
};
// A friend declaration alone is not exported.
bool operator==(const ResourceSet& a, const ResourceSet& b);

/// Whether both are null, or have the same value: neither the order of keys nor the digits of a number
/// matter.
[[nodiscard]] bool same_scheduling(const std::string* a, const std::string* b);

/// Whether both sets have the same ranks with the same hosts, cores and gpus; properties and times may
/// differ.
[[nodiscard]] bool same_resources(const ResourceSet& a, const ResourceSet& b);

}  // namespace resourced::rset
#pragma GCC visibility pop
