#include "core/text/host_index.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <utility>

#include "core/text/digits.hpp"
#include "core/text/host_name.hpp"
#include "core/text/hostlist.hpp"

namespace resourced {

namespace {

/// A blank separates, because names have none.
std::string group_key(std::string_view prefix, std::string_view suffix, std::uint32_t width) {
  std::string key;
  key.reserve(prefix.size() + suffix.size() + 2);
  key.append(prefix).append(1, ' ').append(suffix).append(1, static_cast<char>(width));
  return key;
}

}  // namespace

HostIndex::HostIndex(const Hostlist& hosts) {
  std::uint32_t stem = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t width = 0;
  std::vector<Piece>* group = nullptr;
  std::set<std::pair<std::size_t, std::size_t>> shapes;
  const auto add = [&](const Hostlist::Run& run, std::uint64_t first, std::uint64_t last,
                       std::uint32_t new_width) {
    if (run.stem != stem || new_width != width || group == nullptr) {
      stem = run.stem;
      width = new_width;
      const std::string_view prefix = hosts.prefix(hosts.stems_[stem]);
      const std::string_view suffix = hosts.suffix(hosts.stems_[stem]);
      group = &groups_[group_key(prefix, suffix, width)];
      if (width > 0 && shapes.emplace(prefix.size(), suffix.size()).second)
        shapes_.push_back({.prefix_size = prefix.size(), .suffix_size = suffix.size()});
    }
    group->push_back({.first = first,
                      .last = last,
                      .position = static_cast<std::uint32_t>(run.start + (first - run.first))});
  };
  for (const Hostlist::Run& run : hosts.runs_) {
    // Numbers with leading zeros are found by their width; the others of the run are written as if without
    // one.
    const std::uint64_t last = run.first + (run.count - 1);
    const std::uint64_t plain = run.width > 1 ? smallest_with_digits(run.width) : run.first;
    if (run.width > 1) add(run, run.first, std::min(last, plain - 1), run.width);
    if (plain <= last) add(run, plain, last, std::min(run.width, 1U));
  }
  for (auto& [key, pieces] : groups_) keep_first_positions(pieces);
}

/// Puts the pieces in ascending order and, where they overlap, leaves the part that comes first in the list.
void HostIndex::keep_first_positions(std::vector<Piece>& pieces) {
  const auto by_first = [](const Piece& a, const Piece& b) { return a.first < b.first; };
  const auto overlap = [](const Piece& a, const Piece& b) { return a.last >= b.first; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), by_first))
    std::sort(pieces.begin(), pieces.end(), by_first);
  if (std::adjacent_find(pieces.begin(), pieces.end(), overlap) == pieces.end()) return;

  // Of all pieces that cover a number, the one with the least position is first in the list as a whole.
  const auto later = [](const Piece& a, const Piece& b) { return a.position > b.position; };
  std::priority_queue<Piece, std::vector<Piece>, decltype(later)> open(later);
  std::vector<Piece> result;
  std::size_t next = 0;
  std::uint64_t at = 0;
  while (next < pieces.size() || !open.empty()) {
    if (open.empty()) at = std::max(at, pieces[next].first);
    while (next < pieces.size() && pieces[next].first <= at) open.push(pieces[next++]);
    const Piece piece = open.top();
    if (piece.last < at) {
      open.pop();
      continue;
    }
    const std::uint64_t end =
        next < pieces.size() ? std::min(piece.last, pieces[next].first - 1) : piece.last;
    const auto position = static_cast<std::uint32_t>(piece.position + (at - piece.first));
    const bool continues = !result.empty() && result.back().last + 1 == at &&
                           result.back().position + (at - result.back().first) == position;
    if (continues) {
      result.back().last = end;
    } else {
      result.push_back({.first = at, .last = end, .position = position});
    }
    at = end + 1;
  }
  pieces = std::move(result);
}

std::optional<std::size_t> HostIndex::find(std::string_view host) const {
  const auto find_in = [&](std::string_view prefix, std::string_view suffix, std::uint64_t number,
                           std::uint32_t width) -> std::optional<std::size_t> {
    const auto group = groups_.find(group_key(prefix, suffix, width));
    if (group == groups_.end()) return std::nullopt;
    const auto piece = std::partition_point(group->second.begin(), group->second.end(),
                                            [number](const Piece& p) { return p.last < number; });
    if (piece == group->second.end() || number < piece->first) return std::nullopt;
    return piece->position + (number - piece->first);
  };
  // The same host may be there in more than one reading: `a1b2` as `a[1]b2` and as `a1b[2]`.
  std::optional<std::size_t> first = find_in(host, {}, 0, 0);
  for (const Shape shape : shapes_) {
    const std::size_t around = shape.prefix_size + shape.suffix_size;
    if (host.size() <= around || host.size() - around > max_number_digits) continue;
    const std::string_view digits = host.substr(shape.prefix_size, host.size() - around);
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) continue;
    const HostNumber number = read_host_number(digits);
    const auto position = find_in(host.substr(0, shape.prefix_size),
                                  host.substr(host.size() - shape.suffix_size), number.value, number.width);
    if (position && (!first || *position < *first)) first = position;
  }
  return first;
}

}  // namespace resourced
