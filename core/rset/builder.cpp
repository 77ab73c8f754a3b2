#include "core/rset/builder.hpp"

#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/group_table.hpp"
#include "core/rset/host_repeats.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

/// Numbers hosts in the order in which they are first named.
class RankNumbers {
 public:
  explicit RankNumbers(const std::vector<const Hostlist*>& lists) {
    for (const Hostlist* list : lists) add(*list);
    if (hosts_.size() > ResourceSet::max_targets)
      throw Error(EINVAL, fmt::format("the inventory has more than {} hosts", ResourceSet::max_targets));
    if (has_repeats(hosts_)) number_one_by_one();
  }

  /// The ranks of an entry's hosts.
  [[nodiscard]] const IdSet& ranks(std::size_t entry) const { return blocks_[block_of_[entry]].ranks; }
  [[nodiscard]] Hostlist take_hosts() { return std::move(hosts_); }

 private:
  struct Block {
    /// Where the hosts of the block stand in hosts_.
    IdSet::Range positions;
    IdSet ranks;
  };

  /// Entries that name the very same hosts share a block. As long as no host is in two blocks, ranks are
  /// positions.
  void add(const Hostlist& list) {
    const auto [known, is_new] = numbers_.try_emplace(list.encode(), blocks_.size());
    block_of_.push_back(known->second);
    if (!is_new) return;
    const auto first = static_cast<IdSet::Id>(hosts_.size());
    hosts_.append(list);
    const IdSet::Range positions{first, static_cast<IdSet::Id>(hosts_.size() - 1)};
    blocks_.push_back({positions, IdSet::range(positions.first, positions.last)});
  }

  void number_one_by_one() {
    const HostIndex index(hosts_);
    std::vector<IdSet::Id> ranks;
    ranks.reserve(hosts_.size());
    IdSetBuilder first_mentions;
    IdSet::Id next = 0;
    hosts_.for_each([&](std::string_view host) {
      const std::size_t position = ranks.size();
      const std::size_t first = index.find(host).value_or(position);
      if (first == position) {
        first_mentions.append(static_cast<IdSet::Id>(position), static_cast<IdSet::Id>(position));
        ranks.push_back(next++);
      } else {
        ranks.push_back(ranks[first]);
      }
    });
    hosts_ = hosts_.select(first_mentions.take());
    for (Block& block : blocks_) {
      IdCollector collected;
      for (std::size_t position = block.positions.first; position <= block.positions.last; ++position)
        collected.add(ranks[position]);
      block.ranks = collected.take();
    }
  }

  Hostlist hosts_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> block_of_;
};

}  // namespace

void InventoryBuilder::add(Hostlist hosts, IdSet cores, IdSet gpus, std::vector<std::string> properties) {
  if (hosts.empty()) throw Error(EINVAL, "hosts is empty");
  for (const std::string& name : properties) {
    const std::string defect = property_name_defect(name);
    if (!defect.empty())
      throw Error(EINVAL, fmt::format("property {}: {}", quoted(std::string_view(name)), defect));
  }
  entries_.push_back({std::move(hosts), std::move(cores), std::move(gpus), std::move(properties)});
}

ResourceSet InventoryBuilder::finish() const {
  std::vector<const Hostlist*> lists;
  lists.reserve(entries_.size());
  for (const Entry& entry : entries_) lists.push_back(&entry.hosts);
  RankNumbers numbers(lists);

  GroupTable table;
  std::map<std::string, IdCollector> holders;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const IdSet& ranks = numbers.ranks(i);
    // Entries that give nothing take part too, so that a host that never gets anything shows up as a group.
    table.add(ranks, table.children(entry.cores, entry.gpus, nullptr), i);
    for (const std::string& name : entry.properties) holders[name].add(ranks);
  }
  Hostlist hosts = numbers.take_hosts();
  std::vector<ResourceGroup> groups =
      table.finish(GroupTable::Repeats::allowed, [](const GroupTable::Conflict& conflict) {
        return Error(EINVAL, fmt::format("rank {} {}", conflict.rank, conflict.text));
      });
  for (const ResourceGroup& group : groups)
    if (group.cores.empty() && group.gpus.empty())
      throw Error(EINVAL, fmt::format("host {} has neither cores nor gpus", hosts.at(group.ranks.first())));

  ResourceSet inventory(std::move(groups), std::move(hosts));
  for (auto& [name, ranks] : holders) inventory.add_property(name, ranks.take());
  return inventory;
}

}  // namespace resourced
