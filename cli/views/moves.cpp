#include "cli/views/moves.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/utf8.hpp"

namespace resourced::cli::views {

using proto::topics::Division;
using text::IdSet;

namespace {

/// The name of a partition; unset for the targets in none.
using Name = std::optional<std::string>;

struct Move {
  IdSet ranks;
  Name from;
  Name to;
};

std::vector<Move> find_moves(const Division& division, const IdSet& targets) {
  std::vector<std::pair<Name, const Division::Partition*>> parts;
  for (const auto& [name, partition] : division.partitions) parts.emplace_back(name, &partition);
  if (division.rest) parts.emplace_back(std::nullopt, &*division.rest);
  std::vector<std::pair<Name, IdSet>> coming;
  coming.reserve(parts.size());
  for (const auto& [name, part] : parts) coming.emplace_back(name, part->waiting & targets);
  std::vector<Move> moves;
  const auto add = [&](IdSet ranks, const Name& from, const Name& to) {
    if (!ranks.empty()) moves.push_back({std::move(ranks), from, to});
  };
  for (const auto& [from, part] : parts) {
    for (auto& [to, waiting] : coming) {
      const IdSet ranks = waiting & part->leaving;
      waiting -= ranks;
      add(ranks, from, to);
    }
  }
  for (auto& [name, waiting] : coming) add(std::move(waiting), name, name);
  return moves;
}

std::string text_of(const Name& partition, const Division& division) {
  if (partition) return "partition " + json_text::printable(*partition);
  return division.partitions.empty() ? "the resources" : "the rest";
}

}  // namespace

nlohmann::json moves_of(const Division& division, const IdSet& targets) {
  const auto part = [](const Name& name) { return name ? nlohmann::json(*name) : nlohmann::json(); };
  auto moves = nlohmann::json::array();
  for (const Move& move : find_moves(division, targets))
    moves.push_back({{"ranks", move.ranks.encode()}, {"from", part(move.from)}, {"to", part(move.to)}});
  return moves;
}

std::string short_moves_of(const Division& division, const IdSet& targets) {
  std::string text;
  for (const Move& move : find_moves(division, targets)) {
    const std::string to = text_of(move.to, division);
    const std::string way = move.from == move.to
                                ? fmt::format("with the next acquire of {}", to)
                                : fmt::format("from {} to {}", text_of(move.from, division), to);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", move.ranks.encode(), way);
  }
  return text;
}

std::string moves_text(const Division& division, const IdSet& targets) {
  std::string lines;
  for (const Move& move : find_moves(division, targets)) {
    const std::string ranks = move.ranks.encode();
    const std::string from = text_of(move.from, division);
    if (move.from == move.to) {
      lines += fmt::format("targets {} wait for the holder of {} to acquire again\n", ranks, from);
      continue;
    }
    lines += fmt::format("targets {} wait to move from {} to {}: the holder of {} must release them\n", ranks,
                         from, text_of(move.to, division), from);
  }
  return lines;
}

}  // namespace resourced::cli::views
