#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/feasibility/piece_search.hpp"

namespace resourced::feasibility {

using constraint::Budget;

namespace {

constexpr std::size_t max_fillings = 2048;
constexpr std::size_t max_tries = 200'000;

class Lister {
 public:
  Lister(const Demand& demand, std::size_t& fillings_left, std::size_t& tries_left, Budget& budget)
      : demand_(demand), fillings_left_(fillings_left), tries_left_(tries_left), budget_(budget) {}

  /// Lists the fillings of a kind. Returns false if there are too many.
  bool list(const NodeKind& kind) {
    filling_.assign(demand_.nodes.size() + demand_.pieces.size(), 0);
    serves_ = false;
    if (!add_pieces(kind, 0)) return false;
    serves_ = true;
    for (std::size_t d = 0; d < demand_.nodes.size(); ++d) {
      const NodeDemand& node = demand_.nodes[d];
      if (!holds(kind, node)) continue;
      filling_.assign(filling_.size(), 0);
      filling_[d] = 1;
      if (node.whole ? !keep() : !add_pieces({1, kind.cores - node.cores, kind.gpus - node.gpus}, 0))
        return false;
    }
    return true;
  }

  std::vector<Filling> take() { return std::move(fillings_); }

 private:
  bool add_pieces(const NodeKind& rest, std::size_t index) {
    if (tries_left_-- == 0) return false;
    budget_.spend(1 + (index == demand_.pieces.size() ? filling_.size() : 0));
    if (index == demand_.pieces.size()) return can_hold_more(rest) || keep();
    const PieceDemand& piece = demand_.pieces[index];
    std::uint64_t& amount = filling_[demand_.nodes.size() + index];
    for (std::uint64_t n = std::min(pieces_in(rest, piece), piece.count) + 1; n-- > 0;) {
      amount = n;
      if (!add_pieces({1, rest.cores - n * piece.cores, rest.gpus - n * piece.gpus}, index + 1)) return false;
    }
    return true;
  }

  bool can_hold_more(const NodeKind& rest) const {
    for (std::size_t i = 0; i < demand_.pieces.size(); ++i) {
      const PieceDemand& piece = demand_.pieces[i];
      if (filling_[demand_.nodes.size() + i] < piece.count && pieces_in(rest, piece) > 0) return true;
    }
    const auto fits_in = [&](const NodeDemand& node) { return !node.whole && holds(rest, node); };
    return !serves_ && std::ranges::any_of(demand_.nodes, fits_in);
  }

  bool keep() {
    if (std::ranges::all_of(filling_, [](std::uint64_t amount) { return amount == 0; })) return true;
    if (fillings_left_-- == 0) return false;
    fillings_.push_back(filling_);
    return true;
  }

  const Demand& demand_;
  std::size_t& fillings_left_;
  std::size_t& tries_left_;
  Budget& budget_;
  Filling filling_;
  bool serves_ = false;
  std::vector<Filling> fillings_;
};

}  // namespace

std::optional<std::vector<std::vector<Filling>>> list_fillings(const std::vector<NodeKind>& kinds,
                                                               const Demand& demand, Budget& budget) {
  std::size_t fillings_left = max_fillings;
  std::size_t tries_left = max_tries;
  std::vector<std::vector<Filling>> fillings;
  for (const NodeKind& kind : kinds) {
    Lister lister(demand, fillings_left, tries_left, budget);
    if (!lister.list(kind)) return std::nullopt;
    fillings.push_back(lister.take());
  }
  return fillings;
}

}  // namespace resourced::feasibility
