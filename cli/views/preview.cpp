#include "cli/views/preview.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli::views {

using json_text::printable;
using proto::topics::Status;
using rset::ResourceCounts;
using rset::ResourceSet;
using text::IdSet;

namespace {

std::string hosts_of(const IdSet& ranks, const ResourceSet& inventory) {
  return inventory.hosts(ranks).encode();
}

const char* phrase(DrainedAlready then) {
  switch (then) {
    case DrainedAlready::skipped:
      return "is left as it is";
    case DrainedAlready::reason_replaced:
      return "gets the new reason";
    case DrainedAlready::replaced:
      return "gets the new reason and time";
    case DrainedAlready::refused:
      break;
  }
  return "refuses the drain";
}

/// Returns how an existing drain is treated: without a reason it gets one, or stays; one with a reason
/// follows the mode.
DrainedAlready treatment(const module::DrainGroup& drain, const PlannedDrain& plan) {
  const bool keeps = plan.mode == DrainedAlready::refused || plan.mode == DrainedAlready::skipped;
  if (!keeps || drain.reason) return plan.mode;
  return plan.reason ? DrainedAlready::reason_replaced : DrainedAlready::skipped;
}

IdSet available(const Status& status) {
  IdSet available = status.online & status.inventory.ranks();
  available -= status.exclude;
  available -= status.torpid;
  for (const module::DrainGroup& drain : status.drains) available -= drain.ranks;
  return available;
}

std::string change(std::size_t now, std::size_t after) { return fmt::format("{} -> {}", now, after); }

}  // namespace

bool DrainPreview::is_refused() const {
  return !excluded.empty() ||
         std::ranges::any_of(drained, [](const Drained& one) { return one.then == DrainedAlready::refused; });
}

DrainPreview preview_drain(const PlannedDrain& plan, const Status& status,
                           const std::vector<proto::topics::ListedAllocation>& allocations) {
  DrainPreview preview;
  preview.changed = plan.targets;
  // Indices in preview.drained, since every node may be drained for a different reason.
  std::map<std::pair<std::string, DrainedAlready>, std::size_t> known;
  const auto add_drained = [&](IdSet ranks, const module::DrainGroup& drain, DrainedAlready then) {
    if (ranks.empty()) return;
    if (then == DrainedAlready::skipped || then == DrainedAlready::refused) preview.changed -= ranks;
    const auto [same, is_new] = known.try_emplace({drain.reason.value_or(""), then}, preview.drained.size());
    if (is_new) {
      preview.drained.push_back({std::move(ranks), drain.reason.value_or(""), then});
    } else {
      preview.drained[same->second].ranks |= ranks;
    }
  };
  for (const module::DrainGroup& drain : status.drains) {
    IdSet ranks = drain.ranks & plan.targets;
    const DrainedAlready then = treatment(drain, plan);
    if (then == DrainedAlready::skipped && plan.reason) {
      const IdSet taken_over = ranks - kept_by_update(drain, status.inventory);
      add_drained(taken_over, drain, DrainedAlready::reason_replaced);
      ranks -= taken_over;
    }
    add_drained(std::move(ranks), drain, then);
  }
  preview.excluded = plan.targets & status.exclude;
  for (const auto& allocation : allocations) {
    IdSet ranks = allocation.resources.ranks() & plan.targets;
    if (!ranks.empty()) preview.allocations.push_back({allocation.name(), std::move(ranks)});
  }
  const IdSet now = available(status);
  const auto add = [&](std::string name, const IdSet& targets) {
    const auto count = [&](const IdSet& ranks) { return status.inventory.copy_ranks(ranks).counts(); };
    preview.left.push_back({std::move(name), count(now & targets), count((now & targets) - plan.targets)});
  };
  add("all", status.inventory.ranks());
  for (const auto& [name, ranks] : status.inventory.properties()) add("property:" + name, ranks);
  for (const auto& [name, partition] : status.partitions) add("partition:" + name, partition.targets);
  return preview;
}

std::string render_preview(const DrainPreview& preview, const PlannedDrain& plan,
                           const ResourceSet& inventory) {
  std::string out = "nothing would be drained";
  if (!preview.changed.empty()) {
    const std::size_t count = preview.changed.count();
    out = fmt::format("would drain {} node{}: {}", count, count == 1 ? "" : "s",
                      hosts_of(preview.changed, inventory));
    if (plan.reason) out += fmt::format(" ({})", printable(*plan.reason));
  }
  out += '\n';
  for (const auto& drained : preview.drained) {
    const std::string reason = drained.reason.empty() ? "" : fmt::format(" ({})", printable(drained.reason));
    out += fmt::format("drained already: {}{}, which {}\n", hosts_of(drained.ranks, inventory), reason,
                       phrase(drained.then));
  }
  if (!preview.excluded.empty())
    out += fmt::format("excluded: {}, which refuses the drain\n", hosts_of(preview.excluded, inventory));
  for (const auto& allocation : preview.allocations)
    out += fmt::format("allocated: {} on {}\n", printable(text_of(allocation.name)),
                       hosts_of(allocation.ranks, inventory));
  Listing table{
      {{"left", "LEFT"}, {"nodes", "NODES", true}, {"cores", "CORES", true}, {"gpus", "GPUS", true}}, {}};
  for (const auto& [name, now, after] : preview.left) {
    table.rows.push_back(
        {name, change(now.nodes, after.nodes), change(now.cores, after.cores), change(now.gpus, after.gpus)});
  }
  return out + render(table, {});
}

nlohmann::ordered_json preview_json(const DrainPreview& preview, const PlannedDrain& plan,
                                    const ResourceSet& inventory) {
  using Json = nlohmann::ordered_json;
  Json object{{"change", "drain"},
              {"dry_run", true},
              {"refused", preview.is_refused()},
              {"nnodes", preview.changed.count()},
              {"ranks", preview.changed.encode()},
              {"nodelist", hosts_of(preview.changed, inventory)}};
  if (plan.reason) object["reason"] = *plan.reason;
  object["drained"] = Json::array();
  for (const auto& drained : preview.drained) {
    object["drained"].push_back({{"nodelist", hosts_of(drained.ranks, inventory)},
                                 {"reason", drained.reason},
                                 {"then", phrase(drained.then)}});
  }
  object["excluded"] = hosts_of(preview.excluded, inventory);
  object["allocations"] = Json::array();
  for (const auto& allocation : preview.allocations)
    object["allocations"].push_back({{"id", allocation.name.id},
                                     {"partition", allocation.name.partition},
                                     {"nodelist", hosts_of(allocation.ranks, inventory)}});
  object["left"] = Json::array();
  for (const auto& [name, now, after] : preview.left) {
    const auto counts = [](const ResourceCounts& of) {
      return Json{{"nodes", of.nodes}, {"cores", of.cores}, {"gpus", of.gpus}};
    };
    object["left"].push_back({{"set", name}, {"now", counts(now)}, {"after", counts(after)}});
  }
  return object;
}

}  // namespace resourced::cli::views
