#include <map>
#include <utility>

#include "core/feasibility/piece_search.hpp"
#include "docs/examples/fifo_scheduler/request.hpp"

namespace resourced::fifo {

using feasibility::Demand;
using feasibility::Filling;
using feasibility::NodeKind;

namespace {

/// Counts equal nodes together: the cost of packing depends on the number of kinds.
class Pile {
 public:
  void add(const NodeKind& node) { ++count_[{node.cores, node.gpus}]; }
  void remove(const NodeKind& node) {
    const auto kind = count_.find({node.cores, node.gpus});
    if (--kind->second == 0) count_.erase(kind);
  }
  [[nodiscard]] bool holds(const Demand& wanted) const {
    std::vector<NodeKind> kinds;
    for (const auto& [each, count] : count_) kinds.push_back({count, each.first, each.second});
    return pack(kinds, wanted).answer == feasibility::Packing::Answer::fits;
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> count_;
};

bool is_empty(const Demand& wanted) { return wanted.nodes.empty() && wanted.pieces.empty(); }

Demand without(Demand wanted, const Filling& served) {
  std::size_t part = 0;
  for (feasibility::NodeDemand& node : wanted.nodes) node.count -= served[part++];
  for (feasibility::PieceDemand& piece : wanted.pieces) piece.count -= served[part++];
  const auto is_served = [](const auto& demand) { return demand.count == 0; };
  std::erase_if(wanted.nodes, is_served);
  std::erase_if(wanted.pieces, is_served);
  return wanted;
}

Share share_of(std::size_t node, const Demand& wanted, const Filling& served) {
  Share share{node};
  std::size_t part = 0;
  const auto add = [&](const auto& demand) {
    share.cores += served[part] * demand.cores;
    share.gpus += served[part] * demand.gpus;
    return served[part++] > 0;
  };
  for (const feasibility::NodeDemand& demand : wanted.nodes) share.whole |= add(demand) && demand.whole;
  for (const feasibility::PieceDemand& demand : wanted.pieces) add(demand);
  return share;
}

}  // namespace

// Places the request. If it fits, it also fits with this node filled to a maximum: a part that could be added
// here can move here from another node. So it is enough to try the maximal fillings.
std::optional<std::vector<Share>> place(const std::vector<NodeKind>& nodes, Demand wanted) {
  Pile rest;
  for (const NodeKind& node : nodes) rest.add(node);
  if (!rest.holds(wanted)) return std::nullopt;

  std::vector<Share> shares;
  for (std::size_t i = 0; i < nodes.size() && !is_empty(wanted); ++i) {
    rest.remove(nodes[i]);
    constraint::Budget unlimited;
    const auto fillings = list_fillings({nodes[i]}, wanted, unlimited);
    if (!fillings) return std::nullopt;
    for (const Filling& filling : fillings->front()) {
      const Demand left = without(wanted, filling);
      if (!is_empty(left) && !rest.holds(left)) continue;
      shares.push_back(share_of(i, wanted, filling));
      wanted = left;
      break;
    }
  }
  return is_empty(wanted) ? std::optional(std::move(shares)) : std::nullopt;
}

}  // namespace resourced::fifo
