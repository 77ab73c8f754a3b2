#include "core/feasibility/piece_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/hash.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using constraint::plus;
using constraint::times;

namespace {

using Answer = Packing::Answer;
/// The amount of each part of the demand that is not yet served, in the order of a filling.
using Wanted = std::vector<std::uint64_t>;
/// The weight of one unit of each part. A demand whose weighted total is above that of the best fillings of
/// all nodes cannot be met. By linear programming duality such weights exist for every demand that fractions
/// of fillings cannot meet either.
using Weights = std::vector<std::uint64_t>;

constexpr std::size_t max_parts = 512;
constexpr std::size_t max_parts_searched = 64;
constexpr std::uint64_t max_work = 8'000'000;
constexpr std::size_t max_remembered = 100'000;
constexpr std::size_t weight_rounds = 64;
constexpr double weight_scale = 1 << 20;

std::uint64_t weigh(const Weights& weights, const std::vector<std::uint64_t>& amounts) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) total = plus(total, times(weights[i], amounts[i]));
  return total;
}

class Search {
 public:
  Search(const std::vector<NodeKind>& kinds, const Demand& demand, std::vector<std::vector<Filling>> fillings,
         Budget& budget)
      : kinds_(kinds), fillings_(std::move(fillings)), budget_(budget) {
    for (const std::vector<Filling>& of_kind : fillings_) filling_count_ += of_kind.size();
    for (const NodeDemand& node : demand.nodes) wanted_.push_back(node.count);
    for (const PieceDemand& piece : demand.pieces) wanted_.push_back(piece.count);
    add_plain_weights(demand);
  }

  Answer run() {
    if (!find_weights()) return Answer::does_not_fit;
    // Sort the fillings of most weight first, since they are the most likely ones.
    for (std::vector<Filling>& fillings : fillings_)
      std::ranges::sort(fillings, std::greater{},
                        [&](const Filling& f) { return weigh(weights_.back(), f); });
    budget_.spend(weights_.size() * weighing_all());
    tabulate_best();
    if (search({0, 0, kinds_[0].count}, wanted_)) return Answer::fits;
    return work_ > max_work ? Answer::unknown : Answer::does_not_fit;
  }

 private:
  /// A point of the search: `nodes` nodes of this kind have no filling yet, and the number of nodes is fixed
  /// for each filling before `filling`.
  struct Place {
    std::size_t kind;
    std::size_t filling;
    std::uint64_t nodes;
  };

  struct HashOfState {
    std::size_t operator()(const std::vector<std::uint64_t>& state) const noexcept {
      const std::string_view bytes(reinterpret_cast<const char*>(state.data()),
                                   state.size() * sizeof(std::uint64_t));
      return static_cast<std::size_t>(Hash().add(bytes).value());
    }
  };

  /// Weights by cores, by gpus, and of each part alone.
  void add_plain_weights(const Demand& demand) {
    Weights cores;
    Weights gpus;
    const auto add = [&](const auto& part) {
      cores.push_back(part.cores);
      gpus.push_back(part.gpus);
    };
    std::ranges::for_each(demand.nodes, add);
    std::ranges::for_each(demand.pieces, add);
    weights_ = {cores, gpus};
    for (std::size_t part = 0; part < wanted_.size(); ++part) {
      Weights alone(wanted_.size(), 0);
      alone[part] = 1;
      weights_.push_back(alone);
    }
  }

  /// Looks for weights under which the demand is heaviest, by raising those of parts that the best fillings
  /// serve too little. Returns false if some weights show that the demand cannot be met.
  bool find_weights() {
    budget_.spend((weights_.size() + 3 * weight_rounds) * weighing_all());
    for (const Weights& weights : weights_)
      if (weigh(weights, wanted_) > heaviest(weights)) return false;
    const std::size_t parts = wanted_.size();
    std::vector<double> current(parts);
    std::vector<double> mean(parts, 0);
    for (std::size_t i = 0; i < parts; ++i) current[i] = 1 / static_cast<double>(wanted_[i]);
    for (std::size_t round = 0; round < weight_rounds; ++round) {
      const std::vector<double> served = served_by_best(current);
      double total = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const auto wanted = static_cast<double>(wanted_[i]);
        current[i] *= std::exp(0.5 * (1 - std::min(2.0, served[i] / wanted)) / std::sqrt(1 + round));
        total += current[i] * wanted;
      }
      for (std::size_t i = 0; i < parts; ++i) mean[i] += current[i] /= total;
      if (!keep_weights(current, round + 1 == weight_rounds) ||
          !keep_weights(mean, round + 1 == weight_rounds))
        return false;
    }
    return true;
  }

  bool keep_weights(const std::vector<double>& values, bool for_search) {
    const double largest = *std::ranges::max_element(values);
    Weights weights;
    for (const double value : values)
      weights.push_back(static_cast<std::uint64_t>(std::llround(value / largest * weight_scale)));
    if (weigh(weights, wanted_) > heaviest(weights)) return false;
    if (for_search) weights_.push_back(std::move(weights));
    return true;
  }

  /// Budget steps to weigh every filling once.
  std::uint64_t weighing_all() const { return filling_count_ * wanted_.size(); }

  std::uint64_t heaviest(const Weights& weights) const {
    std::uint64_t total = 0;
    for (std::size_t g = 0; g < kinds_.size(); ++g) {
      std::uint64_t best = 0;
      for (const Filling& filling : fillings_[g]) best = std::max(best, weigh(weights, filling));
      total = plus(total, times(kinds_[g].count, best));
    }
    return total;
  }

  /// Returns the amount of each part that is served if each node has its filling of most weight.
  std::vector<double> served_by_best(const std::vector<double>& weights) const {
    std::vector<double> served(weights.size(), 0);
    for (std::size_t g = 0; g < kinds_.size(); ++g) {
      const Filling* best = nullptr;
      double best_weight = -1;
      for (const Filling& filling : fillings_[g]) {
        double weight = 0;
        for (std::size_t i = 0; i < weights.size(); ++i)
          weight += weights[i] * static_cast<double>(filling[i]);
        if (weight > best_weight) {
          best_weight = weight;
          best = &filling;
        }
      }
      if (best == nullptr) continue;
      for (std::size_t i = 0; i < weights.size(); ++i)
        served[i] += static_cast<double>(kinds_[g].count) * static_cast<double>((*best)[i]);
    }
    return served;
  }

  /// For each of weights_: the largest weight of a node of a kind with this filling or a later one, and the
  /// largest weight of all nodes of this and later kinds.
  void tabulate_best() {
    best_from_.clear();
    later_kinds_.clear();
    for (const Weights& weights : weights_) {
      std::vector<std::vector<std::uint64_t>> best(kinds_.size());
      std::vector<std::uint64_t> later(kinds_.size() + 1, 0);
      for (std::size_t g = kinds_.size(); g-- > 0;) {
        best[g].assign(fillings_[g].size() + 1, 0);
        for (std::size_t i = fillings_[g].size(); i-- > 0;)
          best[g][i] = std::max(best[g][i + 1], weigh(weights, fillings_[g][i]));
        later[g] = plus(later[g + 1], times(kinds_[g].count, best[g][0]));
      }
      best_from_.push_back(std::move(best));
      later_kinds_.push_back(std::move(later));
    }
  }

  bool may_succeed(const Place& place, const Wanted& wanted) const {
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      const std::uint64_t here = times(place.nodes, best_from_[w][place.kind][place.filling]);
      if (weigh(weights_[w], wanted) > plus(here, later_kinds_[w][place.kind + 1])) return false;
    }
    return true;
  }

  bool search(Place place, const Wanted& wanted) {
    if (std::ranges::all_of(wanted, [](std::uint64_t amount) { return amount == 0; })) return true;
    while (place.nodes == 0 || place.filling == fillings_[place.kind].size()) {
      if (++place.kind == kinds_.size()) return false;
      place = {place.kind, 0, kinds_[place.kind].count};
    }
    work_ += weights_.size() * wanted.size();
    budget_.spend(weights_.size() * wanted.size());
    if (work_ > max_work || !may_succeed(place, wanted)) return false;
    std::vector<std::uint64_t> state{place.kind, place.filling, place.nodes};
    state.insert(state.end(), wanted.begin(), wanted.end());
    if (failed_.contains(state)) return false;

    const Filling& filling = fillings_[place.kind][place.filling];
    for (std::uint64_t nodes = std::min(place.nodes, useful(filling, wanted)) + 1; nodes-- > 0;) {
      Wanted rest = wanted;
      for (std::size_t i = 0; i < rest.size(); ++i)
        rest[i] = constraint::less(rest[i], times(nodes, filling[i]));
      if (search({place.kind, place.filling + 1, place.nodes - nodes}, rest)) return true;
      if (work_ > max_work) return false;
    }
    if (failed_.size() < max_remembered) failed_.insert(std::move(state));
    return false;
  }

  /// Returns the number of nodes with this filling that serves all that is wanted of its parts.
  static std::uint64_t useful(const Filling& filling, const Wanted& wanted) {
    std::uint64_t nodes = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (filling[i] > 0) nodes = std::max(nodes, (wanted[i] + filling[i] - 1) / filling[i]);
    return nodes;
  }

  const std::vector<NodeKind>& kinds_;
  std::vector<std::vector<Filling>> fillings_;
  Budget& budget_;
  std::size_t filling_count_ = 0;
  Wanted wanted_;
  std::vector<Weights> weights_;
  std::vector<std::vector<std::vector<std::uint64_t>>> best_from_;
  std::vector<std::vector<std::uint64_t>> later_kinds_;
  std::unordered_set<std::vector<std::uint64_t>, HashOfState> failed_;
  std::uint64_t work_ = 0;
};

}  // namespace

Packing::Answer search_for_packing(const std::vector<NodeKind>& kinds, const Demand& demand, Budget& budget) {
  const std::size_t parts = demand.nodes.size() + demand.pieces.size();
  if (parts > max_parts) return Answer::unknown;
  if (first_fit(kinds, demand, budget)) return Answer::fits;
  if (parts > max_parts_searched) return Answer::unknown;
  std::optional<std::vector<std::vector<Filling>>> fillings = list_fillings(kinds, demand, budget);
  if (!fillings) return Answer::unknown;
  return Search(kinds, demand, std::move(*fillings), budget).run();
}

}  // namespace resourced::feasibility
