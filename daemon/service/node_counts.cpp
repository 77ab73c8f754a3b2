#include "daemon/service/node_counts.hpp"

#include <type_traits>
#include <utility>
#include <variant>

#include "proto/event_json.hpp"

namespace resourced::daemon::service {
namespace {

// Bounds from a flap to a repair of a month.
constexpr std::array<double, 12> down_bounds{1,     10,    60,    300,    1800,   3600,
                                             14400, 43200, 86400, 259200, 604800, 2592000};
// Bounds up to a week, as jobs rarely run longer than some days.
constexpr std::array<double, 11> draining_bounds{1,     10,    60,    300,    1800,  3600,
                                                 14400, 43200, 86400, 259200, 604800};

constexpr std::uint8_t bit(NodeCounts::State state) { return static_cast<std::uint8_t>(1U << state); }

bool has(std::uint8_t flags, NodeCounts::State state) { return (flags & bit(state)) != 0; }

constexpr std::uint8_t of_all = (1U << NodeCounts::states) - 1;
// The states that allocations and frees can change.
constexpr std::uint8_t of_ledger =
    bit(NodeCounts::allocated) | bit(NodeCounts::draining) | bit(NodeCounts::drained);

}  // namespace

NodeCounts::NodeCounts(const Committed& committed, const module::Acquisition& acquisition)
    : committed_(committed),
      acquisition_(acquisition),
      unavailable_(down_bounds),
      draining_(draining_bounds) {
  // Start series at 0: if one began with its first event, increase() of Prometheus would miss that event.
  for (const char* name : {"drain", "undrain", "online", "offline", "torpid", "lively", "shrink", "loss"})
    transitions_.emplace(name, 0);
}

NodeCounts::Node& NodeCounts::Nodes::operator[](text::IdSet::Id rank) {
  const text::IdSet::Id number = rank / page_size;
  if (last_page_ == nullptr || last_ != number) {
    std::unique_ptr<Page>& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_ = number;
  }
  return (*last_page_)[rank % page_size];
}

void NodeCounts::add(const engine::Record& record) {
  last_ = record.event.timestamp;
  const std::string_view name = proto::event_name(record.event.body);
  const proto::Audience audience = proto::audience_of(name);
  const bool is_change = audience != proto::Audience::ledger && audience != proto::Audience::own;
  if (const std::size_t count = record.ranks.count(); count > 0 && is_change) {
    const auto found = transitions_.find(name);
    (found == transitions_.end() ? transitions_[std::string(name)] : found->second) += count;
  }
  // Forget the nodes, as the ranks of another inventory may be other targets. A restart has a definition
  // after it.
  const bool restarts = std::holds_alternative<module::RestartEvent>(record.event.body);
  if (restarts || std::holds_alternative<module::DefineEvent>(record.event.body)) {
    forget();
  }
  if (restarts) return;
  if (updates_inventory(record.event.body)) return follow_update(record);
  if (committed_.inventory_version() != inventory_version_) return recount(last_);
  if (const auto* alloc = std::get_if<module::AllocEvent>(&record.event.body)) {
    for (const module::SharedAllocation& allocation : alloc->allocations) hold(allocation->resources, true);
  }
  if (const auto* update = std::get_if<module::AllocUpdateEvent>(&record.event.body))
    hold(update->added, true);
  for (const auto& resources : record.released) hold(*resources, false);
  refresh(record.ranks, last_, audience == proto::Audience::ledger ? of_ledger : of_all);
}

void NodeCounts::hold(const rset::ResourceSet& resources, bool adds) {
  // Unsigned arithmetic wraps, so a subtraction adds the two's complement, as in count().
  const auto change = [adds](auto& held, std::size_t count) {
    using Number = std::remove_reference_t<decltype(held)>;
    held += adds ? static_cast<Number>(count) : ~static_cast<Number>(count) + 1;
  };
  for (const rset::ResourceGroup& group : resources.groups()) {
    const std::size_t cores = group.cores.count();
    const std::size_t gpus = group.gpus.count();
    group.ranks.for_each([&](text::IdSet::Id rank) {
      Node& node = nodes_[rank];
      if (!node.is_known) return;
      change(node.held_cores, cores);
      change(node.held_gpus, gpus);
      if (!has(node.flags, allocated)) return;
      Counts& counts = parts_[node.part].of[allocated];
      change(counts.cores, cores);
      change(counts.gpus, gpus);
    });
  }
}

void NodeCounts::follow_update(const engine::Record& record) {
  ++inventory_version_;
  if (std::holds_alternative<module::PropertyEvent>(record.event.body)) {
    if (acquisition_.partitions().empty()) return;
    record.ranks.for_each([&](text::IdSet::Id rank) { place(rank, part_of(rank)); });
    return;
  }
  record.ranks.for_each([&](text::IdSet::Id rank) {
    Node& node = nodes_[rank];
    if (node.is_known) count(node, false);
    set_class(node, ReasonClasses::no_class);
    node = {};
  });
}

void NodeCounts::forget() {
  nodes_.forget();
  drain_classes_ = {};
  inventory_version_ = ~std::uint64_t{0};
}

void NodeCounts::set_class(Node& node, ReasonClasses::Index drain_class) {
  if (node.drain_class == drain_class) return;
  if (node.drain_class != ReasonClasses::no_class) drain_classes_.remove(node.drain_class);
  if (drain_class != ReasonClasses::no_class) drain_classes_.add(drain_class);
  node.drain_class = drain_class;
}

std::uint32_t NodeCounts::part_of(text::IdSet::Id rank) const {
  const auto partition = acquisition_.partition_of(rank);
  return partition ? static_cast<std::uint32_t>(*partition + 1) : 0;
}

void NodeCounts::place(text::IdSet::Id rank, std::uint32_t part) {
  Node& node = nodes_[rank];
  if (!node.is_known) return;
  count(node, false);
  node.part = part;
  count(node, true);
}

const std::vector<NodeCounts::Part>& NodeCounts::parts() {
  if (committed_.inventory_version() != inventory_version_) recount(last_);
  return parts_;
}

void NodeCounts::recount(WallTime now) {
  inventory_version_ = committed_.inventory_version();
  parts_.assign(1, {});
  for (const module::Partition& partition : acquisition_.partitions())
    parts_.push_back({partition.name, {}, {}});
  const text::IdSet& ranks = state().inventory.ranks();
  for (const rset::ResourceGroup& group : state().inventory.groups()) {
    const auto cores = static_cast<std::uint32_t>(group.cores.count());
    const auto gpus = static_cast<std::uint32_t>(group.gpus.count());
    group.ranks.for_each([&](text::IdSet::Id rank) {
      Node& node = nodes_[rank];
      node.part = part_of(rank);
      node.cores = cores;
      node.gpus = gpus;
      node.held_cores = node.held_gpus = 0;
    });
  }
  const module::HeldResources& held = state().ledger.held();
  for (const auto& [number, holding] : held.cores)
    (holding & ranks).for_each([&](text::IdSet::Id rank) { ++nodes_[rank].held_cores; });
  for (const auto& [number, holding] : held.gpus)
    (holding & ranks).for_each([&](text::IdSet::Id rank) { ++nodes_[rank].held_gpus; });
  ranks.for_each([&](text::IdSet::Id rank) {
    Node& node = nodes_[rank];
    count(node, true);
  });
  refresh(ranks, now, of_all);
}

void NodeCounts::refresh(const text::IdSet& ranks, WallTime now, std::uint8_t changing) {
  const text::IdSet known = ranks & state().inventory.ranks();
  if (known.empty()) return;
  const text::IdSet drained_ones = known & state().targets.drains.ranks();
  const text::IdSet allocated_ones = known & state().ledger.ranks();
  known.for_each([&](text::IdSet::Id rank) {
    Node& node = nodes_[rank];
    node.next = static_cast<std::uint8_t>(node.flags & ~changing);
  });
  // A pass over the set of each state is faster than a look-up of each target in each set.
  const auto mark = [&](State state, const text::IdSet& set) {
    set.for_each([&](text::IdSet::Id rank) { nodes_[rank].next |= bit(state); });
  };
  mark(allocated, allocated_ones);
  mark(draining, drained_ones & allocated_ones);
  mark(drained, drained_ones - allocated_ones);
  if (changing == of_all) {
    for (const module::DrainTable::Run& run : state().targets.drains.runs(known)) {
      const auto drain_class =
          run.entry == nullptr ? ReasonClasses::no_class : drain_classes_.of(run.entry->reason.value_or(""));
      for (std::uint64_t rank = run.ranks.first; rank <= run.ranks.last; ++rank)
        set_class(nodes_[static_cast<text::IdSet::Id>(rank)], drain_class);
    }
    mark(up, known & state().available);
    mark(offline, known - state().targets.online);
    mark(torpid, known & state().targets.torpid);
    mark(excluded, known & state().exclude);
  }
  known.for_each([&](text::IdSet::Id rank) { take_next(nodes_[rank], now); });
}

void NodeCounts::take_next(Node& node, WallTime now) {
  const std::uint8_t before = node.flags;
  const bool is_new = std::exchange(node.is_known, true) == false;
  if (before == node.next && !is_new) return;
  count(node, false);
  node.flags = node.next;
  count(node, true);
  if (!has(node.flags, up) && (is_new || has(before, up))) node.down_since = now;
  if (has(node.flags, up) && !is_new && !has(before, up)) unavailable_.add(now - node.down_since);
  if (has(node.flags, draining) && !has(before, draining)) node.draining_since = now;
  if (has(node.flags, drained) && has(before, draining)) draining_.add(now - node.draining_since);
}

void NodeCounts::count(const Node& node, bool adds) {
  const auto change = [adds](Counts& counts, std::uint64_t cores, std::uint64_t gpus) {
    // Unsigned arithmetic wraps, so a subtraction is the addition of a negative number.
    const std::uint64_t sign = adds ? 1 : ~std::uint64_t{0};
    counts.nodes += sign;
    counts.cores += sign * cores;
    counts.gpus += sign * gpus;
  };
  Part& part = parts_[node.part];
  change(part.all, node.cores, node.gpus);
  for (std::size_t i = 0; i < states; ++i) {
    if (!has(node.flags, static_cast<State>(i))) continue;
    if (i == allocated) {
      change(part.of[i], node.held_cores, node.held_gpus);
    } else {
      change(part.of[i], node.cores, node.gpus);
    }
  }
}

}  // namespace resourced::daemon::service
