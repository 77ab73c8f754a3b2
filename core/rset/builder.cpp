#include "core/rset/builder.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/target_table.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

/// The rank of each position in a list: hosts are numbered in the order in which they are first named.
class RankNumbers {
 public:
  /// Numbers the hosts, and removes repeats from the list.
  explicit RankNumbers(Hostlist& hosts) {
    // Without repeats, ranks are positions.
    if (!has_repeats(hosts)) return;
    const text::HostIndex index(hosts);
    ranks_.reserve(hosts.size());
    text::IdSetBuilder first_mentions;
    IdSet::Id next = 0;
    hosts.for_each([&](std::string_view host) {
      const std::size_t position = ranks_.size();
      const std::size_t first = index.find(host).value_or(position);
      if (first == position) {
        first_mentions.append(static_cast<IdSet::Id>(position), static_cast<IdSet::Id>(position));
        ranks_.push_back(next++);
      } else {
        ranks_.push_back(ranks_[first]);
      }
    });
    hosts = hosts.select(first_mentions.take());
  }

  [[nodiscard]] IdSet at(IdSet::Range positions) const {
    if (ranks_.empty()) return IdSet::range(positions.first, positions.last);
    IdCollector collected;
    for (std::size_t position = positions.first; position <= positions.last; ++position)
      collected.add(ranks_[position]);
    return collected.take();
  }

 private:
  std::vector<IdSet::Id> ranks_;
};

}  // namespace

IdSet::Range InventoryBuilder::place(const Hostlist& hosts) {
  const auto append = [&] {
    const auto first = static_cast<IdSet::Id>(hosts_.size());
    hosts_.append(hosts);
    return IdSet::Range{first, static_cast<IdSet::Id>(hosts_.size() - 1)};
  };
  if (hosts.size() == 1) return append();
  std::string text = hosts.encode();
  const auto known = places_.find(text);
  return known != places_.end() ? known->second : places_.emplace(std::move(text), append()).first->second;
}

void InventoryBuilder::add(const Hostlist& hosts, const IdSet& cores, const IdSet& gpus,
                           const std::vector<std::string>& properties) {
  if (hosts.empty()) throw Error(EINVAL, "hosts is empty");
  for (const std::string& name : properties) {
    const std::string defect = property_name_defect(name);
    if (!defect.empty())
      throw Error(EINVAL, fmt::format("property {}: {}", text::quoted(std::string_view(name)), defect));
  }
  // Add entries without resources too, so that finish() finds a host that gets none as a group.
  entries_.push_back({place(hosts), table_.children(cores, gpus, nullptr), properties});
}

ResourceSet InventoryBuilder::finish() {
  if (hosts_.size() > ResourceSet::max_targets)
    throw Error(EINVAL, fmt::format("the inventory has more than {} hosts", ResourceSet::max_targets));
  const RankNumbers numbers(hosts_);
  std::map<std::string, IdCollector> holders;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const IdSet ranks = numbers.at(entries_[i].positions);
    table_.add(ranks, entries_[i].children, i);
    for (const std::string& name : entries_[i].properties) holders[name].add(ranks);
  }
  std::vector<ResourceGroup> groups =
      table_.finish(GroupTable::Repeats::allowed, [](const GroupTable::Conflict& conflict) {
        return Error(EINVAL, fmt::format("rank {} {}", conflict.rank, conflict.text));
      });
  for (const ResourceGroup& group : groups)
    if (group.cores.empty())
      throw Error(EINVAL, fmt::format("host {} has no cores", hosts_.at(group.ranks.first())));

  ResourceSet inventory(std::move(groups), std::move(hosts_));
  for (auto& [name, ranks] : holders) inventory.add_property(name, ranks.take());
  return inventory;
}

}  // namespace resourced::rset
