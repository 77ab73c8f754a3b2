#include <algorithm>
#include <limits>
#include <utility>

#include "core/feasibility/packing.hpp"

namespace resourced::feasibility {

using constraint::Budget;

namespace {

/// Maximum number of pairs of kind and demand, and of visits to pairs in total.
constexpr std::size_t max_pairs = 65536;
constexpr std::uint64_t max_pairs_seen = 20'000'000;

constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// The residual network: a source, the kinds, the demands and a sink. A demand may give nodes back to a kind,
/// at the loss that they had, so that the kind serves another.
class Network {
 public:
  Network(const std::vector<NodeKind>& kinds, const std::vector<NodeDemand>& demands, const LossTable& loss,
          Budget& budget)
      : kinds_(kinds), demands_(demands), loss_(loss), budget_(budget) {
    for (const NodeKind& kind : kinds) idle_.push_back(kind.count);
    for (const NodeDemand& demand : demands) missing_.push_back(demand.count);
    result_.nodes.assign(kinds.size(), std::vector<std::uint64_t>(demands.size(), 0));
  }

  std::optional<NodeAssignment> solve() {
    while (std::ranges::any_of(missing_, [](std::uint64_t count) { return count > 0; })) {
      if (!find_shortest_paths()) return std::nullopt;
      const std::size_t demand = nearest_missing();
      if (demand == none) {
        find_rivals();
        return std::move(result_);
      }
      augment(demand);
    }
    for (std::size_t g = 0; g < kinds_.size(); ++g)
      for (std::size_t d = 0; d < demands_.size(); ++d)
        if (result_.nodes[g][d] > 0) result_.loss += result_.nodes[g][d] * loss_[g][d];
    return std::move(result_);
  }

 private:
  /// Finds the shortest paths by Bellman and Ford's algorithm, because steps that give nodes back have a
  /// negative cost. Returns false if it takes too much work.
  bool find_shortest_paths() {
    to_kind_.assign(kinds_.size(), {unreachable, none});
    to_demand_.assign(demands_.size(), {unreachable, none});
    for (std::size_t g = 0; g < kinds_.size(); ++g)
      if (idle_[g] > 0) to_kind_[g].distance = 0;
    for (bool changed = true; changed;) {
      changed = false;
      work_ += kinds_.size() * demands_.size();
      budget_.spend(kinds_.size() * demands_.size());
      if (work_ > max_pairs_seen) return false;
      for (std::size_t g = 0; g < kinds_.size(); ++g)
        for (std::size_t d = 0; d < demands_.size(); ++d) changed = relax(g, d) || changed;
    }
    return true;
  }

  bool relax(std::size_t g, std::size_t d) {
    if (!holds(kinds_[g], demands_[d])) return false;
    const auto loss = static_cast<std::int64_t>(loss_[g][d]);
    Step& kind = to_kind_[g];
    Step& demand = to_demand_[d];
    if (kind.distance != unreachable && kind.distance + loss < demand.distance) {
      demand = {kind.distance + loss, g};
      return true;
    }
    if (demand.distance != unreachable && result_.nodes[g][d] > 0 && demand.distance - loss < kind.distance) {
      kind = {demand.distance - loss, d};
      return true;
    }
    return false;
  }

  std::size_t nearest_missing() const {
    std::size_t nearest = none;
    for (std::size_t d = 0; d < demands_.size(); ++d) {
      if (missing_[d] == 0 || to_demand_[d].distance == unreachable) continue;
      if (nearest == none || to_demand_[d].distance < to_demand_[nearest].distance) nearest = d;
    }
    return nearest;
  }

  /// Calls f(kind, demand to give to, demand to take from or none) for each step from a demand back to the
  /// source.
  template <class F>
  void walk_back(std::size_t demand, F&& f) const {
    for (std::size_t d = demand; d != none;) {
      const std::size_t g = to_demand_[d].from;
      f(g, d, to_kind_[g].from);
      d = to_kind_[g].from;
    }
  }

  void augment(std::size_t demand) {
    std::uint64_t amount = missing_[demand];
    walk_back(demand, [&](std::size_t g, std::size_t, std::size_t taken_from) {
      amount = std::min(amount, taken_from == none ? idle_[g] : result_.nodes[g][taken_from]);
    });
    walk_back(demand, [&](std::size_t g, std::size_t given_to, std::size_t taken_from) {
      result_.nodes[g][given_to] += amount;
      if (taken_from == none)
        idle_[g] -= amount;
      else
        result_.nodes[g][taken_from] -= amount;
    });
    missing_[demand] -= amount;
  }

  /// Finds the rivals, by Hall's theorem: a demand that lacks nodes, the demands with nodes that it could
  /// use, and so on.
  void find_rivals() {
    std::vector<bool> is_rival(demands_.size(), false);
    const auto first = std::ranges::find_if(missing_, [](std::uint64_t count) { return count > 0; });
    result_.rivals.push_back(static_cast<std::size_t>(first - missing_.begin()));
    is_rival[result_.rivals[0]] = true;
    for (std::size_t i = 0; i < result_.rivals.size(); ++i) {
      budget_.spend(kinds_.size() * demands_.size());
      for (std::size_t g = 0; g < kinds_.size(); ++g) {
        if (!holds(kinds_[g], demands_[result_.rivals[i]])) continue;
        for (std::size_t d = 0; d < demands_.size(); ++d) {
          if (is_rival[d] || result_.nodes[g][d] == 0) continue;
          is_rival[d] = true;
          result_.rivals.push_back(d);
        }
      }
    }
    std::ranges::sort(result_.rivals);
  }

  /// The best path to a vertex: its cost and the vertex before it (none: the source).
  struct Step {
    std::int64_t distance = unreachable;
    std::size_t from = none;
  };

  const std::vector<NodeKind>& kinds_;
  const std::vector<NodeDemand>& demands_;
  const LossTable& loss_;
  Budget& budget_;
  std::vector<std::uint64_t> idle_;
  std::vector<std::uint64_t> missing_;
  std::vector<Step> to_kind_;
  std::vector<Step> to_demand_;
  std::uint64_t work_ = 0;
  NodeAssignment result_;
};

}  // namespace

std::optional<NodeAssignment> assign_nodes(const std::vector<NodeKind>& kinds,
                                           const std::vector<NodeDemand>& demands, const LossTable& loss,
                                           Budget& budget) {
  if (kinds.size() * demands.size() > max_pairs) return std::nullopt;
  return Network(kinds, demands, loss, budget).solve();
}

LossTable lost_pieces(const std::vector<NodeKind>& kinds, const std::vector<NodeDemand>& demands,
                      const PieceDemand& piece) {
  LossTable loss(kinds.size(), std::vector<std::uint64_t>(demands.size(), 0));
  for (std::size_t g = 0; g < kinds.size(); ++g) {
    for (std::size_t d = 0; d < demands.size(); ++d) {
      if (!holds(kinds[g], demands[d])) continue;
      const NodeKind rest{1, kinds[g].cores - demands[d].cores, kinds[g].gpus - demands[d].gpus};
      loss[g][d] = pieces_in(kinds[g], piece) - (demands[d].whole ? 0 : pieces_in(rest, piece));
    }
  }
  return loss;
}

}  // namespace resourced::feasibility
