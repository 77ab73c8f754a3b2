// The resource set R, version 1 (RFC 20): which cores and gpus each execution target (rank) controls, the host
// of each target, properties and times. Both editions of RFC 20 are read; the current one is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced {

struct ResourceCounts {
  std::uint64_t nodes = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  friend bool operator==(const ResourceCounts&, const ResourceCounts&) = default;
};

/// Ranks that control the same resources: one entry of R_lite.
struct ResourceGroup {
  IdSet ranks;
  IdSet cores;
  IdSet gpus;
};

class ResourceSet {
 public:
  using Properties = std::map<std::string, IdSet, std::less<>>;

  /// Reads an R. Throws Error EINVAL that names the JSON path (`execution.R_lite[2].rank: ...`).
  [[nodiscard]] static ResourceSet from_json(const nlohmann::json& document);
  [[nodiscard]] static ResourceSet parse(std::string_view text);

  /// Canonical R: equal children merged into one entry, ordered by first rank, one compressed hostlist.
  [[nodiscard]] nlohmann::json to_json(bool with_scheduling = true) const;
  [[nodiscard]] std::string encode(bool with_scheduling = true) const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] const IdSet& ranks() const noexcept;
  [[nodiscard]] const std::vector<ResourceGroup>& groups() const noexcept;
  [[nodiscard]] const Properties& properties() const noexcept;
  /// Hosts in the order of the sorted ranks.
  [[nodiscard]] const Hostlist& nodelist() const noexcept;
  [[nodiscard]] double starttime() const noexcept;
  [[nodiscard]] double expiration() const noexcept;

  [[nodiscard]] ResourceCounts counts() const;
  [[nodiscard]] ResourceCounts counts(const IdSet& ranks) const;

  /// The hosts of these ranks in rank order; ranks that are not here are passed over.
  [[nodiscard]] Hostlist hosts(const IdSet& ranks) const;
  [[nodiscard]] std::string host(IdSet::Id rank) const;
  /// The rank of a host (the lowest, where several ranks share it).
  [[nodiscard]] std::optional<IdSet::Id> rank_of(std::string_view host) const;

  /// Only these ranks: hosts, properties and R_lite of the others are gone; `scheduling` rides along unchanged.
  [[nodiscard]] ResourceSet copy_ranks(const IdSet& ranks) const;
  void remove_ranks(const IdSet& ranks);

  /// Throws Error EINVAL for a name that RFC 20 does not allow or a rank that is not here.
  void add_property(std::string_view name, const IdSet& ranks);
  void remove_property(std::string_view name, const IdSet& ranks);
  void set_expiration(double time);
};

}  // namespace resourced
