// Packing, compared with a naive search that tries every part on every node.
#include "core/feasibility/packing.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace resourced::feasibility {

using constraint::max_amount;

namespace {

using Answer = Packing::Answer;

/// One node with its free resources.
struct FreeNode {
  std::uint64_t cores;
  std::uint64_t gpus;
  bool served = false;
};

bool place_pieces(std::vector<FreeNode>& nodes, const std::vector<PieceDemand>& pieces, std::size_t kind,
                  std::uint64_t done) {
  if (kind == pieces.size()) return true;
  const PieceDemand& piece = pieces[kind];
  if (done == piece.count) return place_pieces(nodes, pieces, kind + 1, 0);
  for (FreeNode& node : nodes) {
    if (node.cores < piece.cores || node.gpus < piece.gpus) continue;
    node.cores -= piece.cores;
    node.gpus -= piece.gpus;
    const bool placed = place_pieces(nodes, pieces, kind, done + 1);
    node.cores += piece.cores;
    node.gpus += piece.gpus;
    if (placed) return true;
  }
  return false;
}

bool place_all(std::vector<FreeNode>& nodes, const Demand& demand, std::size_t kind, std::uint64_t done) {
  if (kind == demand.nodes.size()) return place_pieces(nodes, demand.pieces, 0, 0);
  const NodeDemand& want = demand.nodes[kind];
  if (done == want.count) return place_all(nodes, demand, kind + 1, 0);
  for (FreeNode& node : nodes) {
    if (node.served || node.cores < want.cores || node.gpus < want.gpus) continue;
    const FreeNode before = node;
    node = want.whole ? FreeNode{0, 0, true} : FreeNode{node.cores - want.cores, node.gpus - want.gpus, true};
    const bool placed = place_all(nodes, demand, kind, done + 1);
    node = before;
    if (placed) return true;
  }
  return false;
}

bool naive(const std::vector<NodeKind>& kinds, const Demand& demand) {
  std::vector<FreeNode> nodes;
  for (const NodeKind& kind : kinds)
    for (std::uint64_t i = 0; i < kind.count; ++i) nodes.push_back({kind.cores, kind.gpus});
  return place_all(nodes, demand, 0, 0);
}

std::string describe(const std::vector<NodeKind>& kinds, const Demand& demand) {
  std::string text;
  for (const NodeKind& kind : kinds) text += fmt::format("{}x({},{}) ", kind.count, kind.cores, kind.gpus);
  for (const NodeDemand& node : demand.nodes)
    text += fmt::format("node {}x({},{}){} ", node.count, node.cores, node.gpus, node.whole ? "whole" : "");
  for (const PieceDemand& piece : demand.pieces)
    text += fmt::format("piece {}x({},{}) ", piece.count, piece.cores, piece.gpus);
  return text;
}

class RandomDemands {
 public:
  explicit RandomDemands(unsigned seed) : engine_(seed) {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(engine_);
  }

 private:
  std::mt19937 engine_;
};

std::vector<NodeKind> random_kinds(RandomDemands& random) {
  std::vector<NodeKind> kinds;
  for (std::uint64_t g = random.between(1, 3); g > 0; --g)
    kinds.push_back({random.between(1, 2), random.between(1, 7), random.between(0, 2)});
  return kinds;
}

Demand random_demand(RandomDemands& random, std::uint64_t most_nodes, std::uint64_t most_pieces) {
  Demand demand;
  for (std::uint64_t d = random.between(0, most_nodes); d > 0; --d)
    demand.nodes.push_back(
        {random.between(1, 2), random.between(0, 5), random.between(0, 2), random.between(0, 1) == 1});
  for (std::uint64_t d = random.between(0, most_pieces); d > 0; --d) {
    PieceDemand piece{random.between(1, 4), random.between(0, 4), random.between(0, 1)};
    if (piece.cores + piece.gpus == 0) piece.cores = 1;
    demand.pieces.push_back(piece);
  }
  return demand;
}

void compare(unsigned seed, int cases, std::uint64_t most_nodes, std::uint64_t most_pieces) {
  INFO("seed ", seed);
  RandomDemands random(seed);
  int feasible = 0;
  for (int i = 0; i < cases; ++i) {
    const std::vector<NodeKind> kinds = random_kinds(random);
    const Demand demand = random_demand(random, most_nodes, most_pieces);
    const bool expected = naive(kinds, demand);
    feasible += expected ? 1 : 0;
    const Packing packing = pack(kinds, demand);
    INFO(describe(kinds, demand));
    REQUIRE(packing.answer == (expected ? Answer::fits : Answer::does_not_fit));
  }
  // Both answers must occur often.
  CHECK(feasible > cases / 20);
  CHECK(feasible < cases - cases / 20);
}

TEST_CASE("node demands alone agree with a naive search") { compare(1, 4000, 4, 0); }
TEST_CASE("node demands beside one kind of piece agree with a naive search") { compare(2, 4000, 3, 1); }
TEST_CASE("node demands beside several kinds of pieces agree with a naive search") { compare(3, 4000, 2, 3); }
TEST_CASE("several kinds of pieces agree with a naive search") { compare(4, 4000, 0, 3); }

TEST_CASE("rivals are demands that together need more nodes than there are for any of them") {
  const std::vector<NodeKind> kinds{{4, 8, 0}, {3, 4, 2}, {5, 4, 0}};
  const Demand demand{{{2, 1, 1, false}, {5, 2, 0, true}, {2, 4, 2, true}}, {}};
  const Packing packing = pack(kinds, demand);
  CHECK(packing.answer == Answer::does_not_fit);
  CHECK(packing.rivals == std::vector<std::size_t>{0, 2});
  CHECK(packing.nodes_for_rivals == 3);
}

struct LargeCase {
  std::string what;
  std::vector<NodeKind> kinds;
  Demand demand;
  Answer answer;
};

TEST_CASE("the size of the counts does not matter") {
  constexpr std::uint64_t n = 131072;
  const std::vector<LargeCase> cases{
      {"as many nodes as there are", {{n, 8, 2}}, {{{n, 8, 2, true}}, {}}, Answer::fits},
      {"one node too many",
       {{n, 8, 2}},
       {{{n / 2, 8, 2, true}, {n / 2 + 1, 1, 0, true}}, {}},
       Answer::does_not_fit},
      {"the demand with the higher needs takes the better nodes",
       {{n, 8, 2}, {n, 8, 0}},
       {{{n, 1, 0, true}, {n, 8, 1, true}}, {}},
       Answer::fits},
      {"slots of 5 cores, one a node", {{n, 8, 0}}, {{}, {{n, 5, 0}}}, Answer::fits},
      {"slots of 5 cores, one more", {{n, 8, 0}}, {{}, {{n + 1, 5, 0}}}, Answer::does_not_fit},
      {"slots of 5 and of 3 cores", {{n, 8, 0}}, {{}, {{n, 5, 0}, {n, 3, 0}}}, Answer::fits},
      {"slots of 5 and of 3 cores, one more of 3",
       {{n, 8, 0}},
       {{}, {{n, 5, 0}, {n + 1, 3, 0}}},
       Answer::does_not_fit},
      {"only a mixture of both in each node goes: 4 + 3 + 3",
       {{n, 10, 0}},
       {{}, {{n, 4, 0}, {2 * n, 3, 0}}},
       Answer::fits},
      {"and one more does not", {{n, 10, 0}}, {{}, {{n, 4, 0}, {2 * n + 1, 3, 0}}}, Answer::does_not_fit},
      {"gpu slots leave cores for the others", {{n, 8, 2}}, {{}, {{2 * n, 2, 1}, {n, 4, 0}}}, Answer::fits},
      {"whole nodes are taken where no gpu is lost",
       {{n, 8, 2}, {n, 8, 0}},
       {{{n, 1, 0, true}}, {{2 * n, 3, 1}, {n, 2, 0}}},
       Answer::fits},
      {"whole nodes would have to lose gpus",
       {{n, 8, 2}, {n, 8, 0}},
       {{{n + 1, 1, 0, true}}, {{2 * n, 3, 1}, {n, 2, 0}}},
       Answer::does_not_fit},
      {"single cores fill what is left", {{n, 8, 0}}, {{}, {{n, 5, 0}, {3 * n, 1, 0}}}, Answer::fits},
      {"and no more than that", {{n, 8, 0}}, {{}, {{n, 5, 0}, {3 * n + 1, 1, 0}}}, Answer::does_not_fit},
      {"amounts past every limit",
       {{n, 8, 2}},
       {{{max_amount, max_amount, max_amount, true}}, {{max_amount, max_amount, 1}}},
       Answer::does_not_fit},
  };
  for (const LargeCase& large : cases) {
    CAPTURE(large.what);
    CHECK(pack(large.kinds, large.demand).answer == large.answer);
  }
}

TEST_CASE("a question that is too large is not answered wrongly and does not hang") {
  Demand demand;
  std::vector<NodeKind> kinds;
  for (std::uint64_t i = 0; i < 600; ++i) {
    demand.pieces.push_back({1000 + i, 3 + i, i % 3});
    kinds.push_back({5000 + i, 640 + i, i % 5});
  }
  CHECK(pack(kinds, demand).answer == Answer::unknown);
  demand.pieces.resize(60);
  CHECK(pack(kinds, demand).answer == Answer::fits);
  demand.pieces[59].count = max_amount;
  CHECK(pack(kinds, demand).answer == Answer::does_not_fit);
}

}  // namespace
}  // namespace resourced::feasibility
