// Events of the journal as lines for people and scripts, and events with fewer targets. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::views {

/// The name of a user id; nothing for one that is not known on this machine.
using UserName = std::function<std::optional<std::string>(std::uint32_t)>;

enum class EventTimes {
  /// `1700000000.250000`, seconds since the epoch
  raw,
  /// `2023-11-14T22:13:20+01:00`, local time; also for the times in the context
  iso,
};

/// `1700000000.250000 drain idset="0" reason="disk"`: the time, the name, and the context, `by` last, with
/// its values as JSON, but a user whose name is known as `by="alice"`. Throws Error EPROTO if it is not an
/// event (RFC 18).
[[nodiscard]] std::string format_event(const nlohmann::json& event, EventTimes times = EventTimes::raw,
                                       const UserName& user_name = {});

/// Takes the targets that a user did not name out of the sets of events: of `idset`, `nodelist`, `ranks`,
/// `online`, `property-add` and `property-remove`. The R of an allocation stays whole.
///
/// Events with a nodelist beside their ranks have the host of each. For others the ranks are those of the
/// inventory, or of the last `restart` that was seen: only a start numbers targets anew.
class TargetClip {
 public:
  /// `targets` is an idset or a hostlist, which may name hosts that have left. Throws Error EINVAL as
  /// parse_known_targets() does.
  TargetClip(std::string_view targets, const rset::ResourceSet& inventory);

  /// The event with the named targets alone; a set without any of them stays as it is. Events have to come in
  /// their order.
  [[nodiscard]] nlohmann::json clip(nlohmann::json event);

 private:
  [[nodiscard]] bool is_wanted(std::string_view host) const { return names_.contains(std::string(host)); }
  /// Takes out of both, and returns the ranks that are left.
  [[nodiscard]] text::IdSet clip_pairs(nlohmann::json& ranks, nlohmann::json& hosts) const;
  static void clip_ranks(nlohmann::json& set, const text::IdSet& wanted);
  void clip_hosts(nlohmann::json& list) const;
  void clip_context(nlohmann::json& context, std::string_view name);

  std::unordered_set<std::string> names_;
  text::IdSet ranks_;
};

}  // namespace resourced::cli::views
