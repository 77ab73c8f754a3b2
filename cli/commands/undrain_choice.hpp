// The options --by and --reason of undrain, which choose among its targets, and its warning about nodes that
// return although they should not be up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/views/event_text.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::usage {
struct Command;
}  // namespace resourced::cli::usage

namespace resourced::cli::commands {

/// A choice among drains; a default one chooses all.
struct UndrainChoice {
  /// The actor (views::is_name_of()); empty for all.
  std::string by;
  /// A shell pattern for the reason. An empty one chooses drains without a reason.
  std::optional<std::string> reason;

  [[nodiscard]] bool is_made() const { return !by.empty() || reason.has_value(); }
};
void add_undrain_choice(usage::Command& undrain, UndrainChoice& choice);

/// Returns the chosen targets by the reasons of their drains.
[[nodiscard]] std::map<std::string, text::IdSet> chosen_drains(const UndrainChoice& choice,
                                                               const text::IdSet& targets,
                                                               const proto::topics::Status& status,
                                                               const views::UserName& user_name);
/// Returns a text such as `by alice for a reason like "fan*"`.
[[nodiscard]] std::string describe(const UndrainChoice& choice);

/// Nodes that should not be up for one reason since one second.
struct UnfitTargets {
  std::string hosts;
  std::string reason;
  std::optional<WallTime> since;
};
/// Finds those of the targets that should not be up, by the present reports of their agents. Warns if the
/// daemon cannot be asked.
[[nodiscard]] std::vector<UnfitTargets> unfit_targets(Context& context, const text::IdSet& targets,
                                                      Snapshot& snapshot);
void warn_of_unfit(const Context& context, const std::vector<UnfitTargets>& unfit);
[[nodiscard]] nlohmann::ordered_json unfit_json(const std::vector<UnfitTargets>& unfit);

}  // namespace resourced::cli::commands
