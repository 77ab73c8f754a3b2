#include "config/reload.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/setting.hpp"
#include "core/rset/operations.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

using rset::ResourceSet;
using text::IdSet;

namespace {

[[noreturn]] void refuse(const Config& next, std::string_view key, std::string_view what) {
  throw next.fault(key, fmt::format("{}cannot change without a restart", what));
}

/// Returns the first rank with other cores or gpus than before, in two sets of the same ranks.
std::optional<IdSet::Id> first_changed_rank(const ResourceSet& now, const ResourceSet& next) {
  std::optional<IdSet::Id> first;
  rset::for_each_pair(now, next,
                      [&](const IdSet& ranks, const rset::ResourceGroup* a, const rset::ResourceGroup* b) {
                        if (a->cores != b->cores || a->gpus != b->gpus)
                          first = std::min(first.value_or(IdSet::max_id), ranks.first());
                      });
  return first;
}

void check_resources(const ResourceSet& now, const Config& next_config, const ResourceSet& next) {
  const Resource& named = next_config.resource;
  std::string_view key = "resource.config";
  if (named.entries.empty()) key = named.parent_r.empty() ? "resource.path" : "resource.parent-uri";
  if (now.ranks() != next.ranks() || now.nodelist() != next.nodelist()) refuse(next_config, key, "hosts ");
  if (const auto rank = first_changed_rank(now, next))
    refuse(next_config, key, fmt::format("cores and gpus of {} ", text::quoted(next.host(*rank))));
  if (!rset::same_scheduling(now.scheduling(), next.scheduling()))
    refuse(next_config, "resource.scheduling", "");
  if (now.starttime() != next.starttime() || now.expiration() != next.expiration())
    refuse(next_config, key, "starttime and expiration ");
}

bool follows_anew(const Config& now, const Config& next) {
  return !next.resource.parent_uri.empty() && std::ranges::any_of(settings(), [&](const Setting& setting) {
    return setting.change == Change::parent && !setting.value.same(now, next);
  });
}

}  // namespace

void check_settings(const Config& now, const Config& next) {
  for (const Setting& setting : settings()) {
    if (setting.change == Change::restart && setting.value.same && !setting.value.same(now, next))
      refuse(next, fmt::format("{}.{}", setting.section, setting.key), "");
  }
  if (now.resource.parent_uri.empty() != next.resource.parent_uri.empty())
    refuse(next, "resource.parent-uri", "");
}

ReloadPlan plan_reload(const Config& now, const Inventory& now_inventory, const Config& next,
                       const Inventory& next_inventory) {
  check_settings(now, next);
  check_resources(now_inventory.resources, next, next_inventory.resources);
  const ResourceSet& before = now_inventory.resources;
  const ResourceSet& after = next_inventory.resources;
  return {rset::new_properties(after, before), rset::new_properties(before, after), follows_anew(now, next)};
}

}  // namespace resourced::config
