#include "core/rset/builder.hpp"

#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/group_table.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

/// Numbers hosts in the order in which they are first named.
class RankNumbers {
 public:
  /// The ranks of an entry's hosts. Entries that name the very same hosts share one numbering, and as long as
  /// no other host is named twice, which repeats() decides, single hosts need not be looked at.
  explicit RankNumbers(const std::vector<const Hostlist*>& lists) {
    for (const Hostlist* list : lists) {
      std::string text = list->encode();
      if (blocks_.contains(text)) {
        keys_.push_back(std::move(text));
        continue;
      }
      const std::size_t first = hosts_.size();
      hosts_.append(*list);
      if (hosts_.size() > IdSet::max_id) throw Error(EINVAL, "the inventory has too many hosts");
      blocks_.emplace(text,
                      IdSet::range(static_cast<IdSet::Id>(first), static_cast<IdSet::Id>(hosts_.size() - 1)));
      keys_.push_back(std::move(text));
    }
    Hostlist distinct = hosts_;
    distinct.unique();
    if (distinct.size() != hosts_.size()) number_one_by_one(lists);
  }

  [[nodiscard]] const IdSet& ranks(std::size_t entry) const { return blocks_.at(keys_[entry]); }
  [[nodiscard]] Hostlist take_hosts() { return std::move(hosts_); }

 private:
  void number_one_by_one(const std::vector<const Hostlist*>& lists) {
    hosts_ = Hostlist();
    std::unordered_map<std::string, IdSet::Id> numbers;
    for (std::size_t entry = 0; entry < lists.size(); ++entry) {
      IdCollector ranks;
      lists[entry]->for_each([&](std::string_view host) {
        const auto [at, is_new] =
            numbers.try_emplace(std::string(host), static_cast<IdSet::Id>(numbers.size()));
        if (is_new) hosts_.append(host);
        ranks.add(at->second);
      });
      blocks_.at(keys_[entry]) = ranks.take();
    }
  }

  Hostlist hosts_;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, IdSet> blocks_;
};

}  // namespace

void InventoryBuilder::add(const Hostlist& hosts, const IdSet& cores, const IdSet& gpus,
                           const std::vector<std::string>& properties) {
  if (hosts.empty()) throw Error(EINVAL, "hosts is empty");
  for (const std::string& name : properties) {
    const std::string defect = property_name_defect(name);
    if (!defect.empty())
      throw Error(EINVAL, fmt::format("property {}: {}", quoted(std::string_view(name)), defect));
  }
  entries_.push_back({hosts, cores, gpus, properties});
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
