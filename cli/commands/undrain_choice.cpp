#include "cli/commands/undrain_choice.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "cli/usage/command.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "proto/topics/peers.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

bool is_chosen(const UndrainChoice& choice, const module::DrainGroup& drain,
               const views::UserName& user_name) {
  if (!choice.by.empty() && (!drain.by || !views::is_name_of(choice.by, *drain.by, user_name))) return false;
  return !choice.reason || ::fnmatch(choice.reason->c_str(), drain.reason.value_or("").c_str(), 0) == 0;
}

}  // namespace

void add_undrain_choice(usage::Command& undrain, UndrainChoice& choice) {
  undrain
      .add_option("--by", choice.by,
                  "Only targets that this user, key or host has drained, as drain lists it; or \"uid N\"")
      ->type_name("USER");
  undrain
      .add_option("--reason", choice.reason, "Only targets whose reason matches this pattern, such as 'fan*'")
      ->type_name("PATTERN")
      ->may_be_empty();
}

std::map<std::string, IdSet> chosen_drains(const UndrainChoice& choice, const IdSet& targets,
                                           const proto::topics::Status& status,
                                           const views::UserName& user_name) {
  std::map<std::string, IdSet> chosen;
  for (const module::DrainGroup& drain : status.drains) {
    const IdSet ranks = drain.ranks & targets;
    if (!ranks.empty() && is_chosen(choice, drain, user_name)) chosen[drain.reason.value_or("")] |= ranks;
  }
  return chosen;
}

std::string describe(const UndrainChoice& choice) {
  std::string text = choice.by.empty() ? "" : "by " + choice.by;
  if (choice.reason)
    text += fmt::format("{}for a reason like \"{}\"", text.empty() ? "" : " ", *choice.reason);
  return text;
}

std::vector<UnfitTargets> unfit_targets(Context& context, const IdSet& targets, Snapshot& snapshot) {
  std::vector<UnfitTargets> unfit;
  if (targets.empty()) return unfit;
  proto::topics::Peers peers;
  try {
    const auto answer =
        context.call_if_served("resource.peers", proto::topics::encode_peers_request({targets.encode()}));
    if (!answer) return unfit;
    peers = proto::topics::parse_peers(*answer);
  } catch (const Error& error) {
    context.warn(fmt::format("not known whether the undrained nodes are fit: {}", error.what()));
    return unfit;
  }
  if (!peers.unfit) return unfit;
  const auto times = peers.unfit_since.value_or(std::map<IdSet::Id, WallTime>());
  // Compare times as they are shown.
  std::map<std::pair<std::string, std::optional<double>>, IdSet> alike;
  for (const auto& [rank, reason] : *peers.unfit) {
    if (!targets.contains(rank)) continue;
    std::optional<double> second;
    if (const auto since = times.find(rank); since != times.end())
      second = std::round(to_number(since->second));
    alike[{reason, second}].insert(rank);
  }
  for (const auto& [key, ranks] : alike) {
    const auto& [reason, second] = key;
    unfit.push_back({snapshot.status().inventory.hosts(ranks).encode(), reason, std::nullopt});
    if (second) unfit.back().since = wall_time(*second);
  }
  return unfit;
}

void warn_of_unfit(const Context& context, const std::vector<UnfitTargets>& unfit) {
  for (const UnfitTargets& entry : unfit) {
    std::string text = fmt::format("undrained, but not fit: {}: {}", entry.hosts, entry.reason);
    if (entry.since) text += ", since " + views::format_moment(*entry.since, context.now());
    context.warn(text);
  }
}

nlohmann::ordered_json unfit_json(const std::vector<UnfitTargets>& unfit) {
  auto list = nlohmann::ordered_json::array();
  for (const UnfitTargets& entry : unfit) {
    nlohmann::ordered_json object{{"nodelist", entry.hosts}, {"reason", entry.reason}};
    object["since"] = entry.since ? nlohmann::ordered_json(to_number(*entry.since)) : nullptr;
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace resourced::cli::commands
