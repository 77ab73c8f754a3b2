#include "core/text/host_index.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/text/digits.hpp"
#include "core/text/host_name.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::text {

namespace {

/// Whether the number between a prefix and a suffix is the last one of the name.
bool is_last_number(std::string_view prefix, std::string_view suffix) {
  return (prefix.empty() || !is_digit(prefix.back())) && std::none_of(suffix.begin(), suffix.end(), is_digit);
}

/// Splits a run of numbers by width. Calls f(first, last, width) for the numbers with leading zeros, whose
/// key has their width, and for the others, whose key has the least width.
template <class F>
void split_by_width(std::uint64_t first, std::uint64_t last, std::uint32_t width, const F& f) {
  const std::uint64_t plain = width > 1 ? smallest_with_digits(width) : first;
  if (width > 1 && first < plain) f(first, std::min(last, plain - 1), width);
  if (plain <= last) f(std::max(first, plain), last, std::min(width, 1U));
}

}  // namespace

std::size_t HostIndex::KeyHash::operator()(const KeyView& key) const noexcept {
  const std::hash<std::string_view> hash;
  constexpr std::size_t spread = 0x9E3779B97F4A7C15U;
  return ((hash(key.prefix) * spread) ^ (key.suffix.empty() ? 0 : hash(key.suffix))) + key.width;
}

HostIndex::HostIndex(const Hostlist& hosts) {
  std::uint32_t stem = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t width = 0;
  std::vector<Piece>* group = nullptr;
  std::set<std::pair<std::size_t, std::size_t>> shapes;
  for (const Hostlist::Run& run : hosts.runs_) {
    split_by_width(
        run.first, run.first + (run.count - 1), run.width,
        [&](std::uint64_t first, std::uint64_t last, std::uint32_t new_width) {
          if (run.stem != stem || new_width != width || group == nullptr) {
            stem = run.stem;
            width = new_width;
            const std::string_view prefix = hosts.prefix(hosts.stems_[stem]);
            const std::string_view suffix = hosts.suffix(hosts.stems_[stem]);
            group = &groups_[Key{std::string(prefix), std::string(suffix), width}];
            if (width > 0 && shapes.emplace(prefix.size(), suffix.size()).second)
              shapes_.push_back({.prefix_size = prefix.size(), .suffix_size = suffix.size()});
            if (width > 0 && !is_last_number(prefix, suffix)) by_last_number_ = false;
          }
          group->push_back({.first = first,
                            .last = last,
                            .position = static_cast<std::uint32_t>(run.start + (first - run.first))});
        });
  }
  for (auto& [key, pieces] : groups_) keep_first_positions(pieces);
}

const HostIndex::Group* HostIndex::group(const KeyView& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

/// Puts the pieces in ascending order and, where they overlap, keeps the one that comes first in the list.
void HostIndex::keep_first_positions(std::vector<Piece>& pieces) {
  const auto by_first = [](const Piece& a, const Piece& b) { return a.first < b.first; };
  const auto overlap = [](const Piece& a, const Piece& b) { return a.last >= b.first; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), by_first))
    std::sort(pieces.begin(), pieces.end(), by_first);
  if (std::adjacent_find(pieces.begin(), pieces.end(), overlap) == pieces.end()) return;

  // Of all pieces that cover a number, the one with the least position gives its first position in the list.
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
    const Group* pieces = group({prefix, suffix, width});
    if (pieces == nullptr) return std::nullopt;
    const auto piece = std::partition_point(pieces->begin(), pieces->end(),
                                            [number](const Piece& p) { return p.last < number; });
    if (piece == pieces->end() || number < piece->first) return std::nullopt;
    return piece->position + (number - piece->first);
  };
  if (by_last_number_) {
    const HostNameParts parts = split_host_name(host);
    if (parts.digits.empty()) return find_in(host, {}, 0, 0);
    const HostNumber number = read_host_number(parts.digits);
    return find_in(parts.prefix, parts.suffix, number.value, number.width);
  }
  // The same host may be indexed under more than one key: `a1b2` as `a[1]b2` and as `a1b[2]`.
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

/// The look-up of all hosts of one list.
class HostIndex::ListSearch {
 public:
  ListSearch(const HostIndex& index, const Hostlist& hosts, std::size_t most_unknown, std::size_t most_found)
      : index_(index), hosts_(hosts), most_unknown_(most_unknown), most_found_(most_found) {}

  Found run() {
    for (const Hostlist::Run& run : hosts_.runs_) {
      split_by_width(run.first, run.first + (run.count - 1), run.width,
                     [&](std::uint64_t first, std::uint64_t last, std::uint32_t width) {
                       if (!is_over()) find(run, first, last, width);
                     });
      if (is_over()) break;
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_over() const { return found_.unknown.size() > most_unknown_; }

  /// Looks up numbers of a run that have the same width: as ranges in the group with their prefix and suffix,
  /// and the numbers missing there one by one.
  void find(const Hostlist::Run& run, std::uint64_t first, std::uint64_t last, std::uint32_t width) {
    if (run.stem != stem_ || width != width_) {
      stem_ = run.stem;
      width_ = width;
      const std::string_view prefix = hosts_.prefix(hosts_.stems_[stem_]);
      const std::string_view suffix = hosts_.suffix(hosts_.stems_[stem_]);
      group_ = index_.group({prefix, suffix, width});
      has_one_form_ = width == 0 || (index_.by_last_number_ && is_last_number(prefix, suffix));
    }
    if (group_ == nullptr) return find_singly(run, first, last);
    auto piece = std::partition_point(group_->begin(), group_->end(),
                                      [first](const Piece& p) { return p.last < first; });
    std::uint64_t at = first;
    for (; piece != group_->end() && piece->first <= last; ++piece) {
      if (at < piece->first) find_singly(run, at, piece->first - 1);
      if (is_over()) return;
      at = std::max(at, piece->first);
      const std::uint64_t end = std::min(last, piece->last);
      const auto position = [&](std::uint64_t number) {
        return static_cast<IdSet::Id>(piece->position + (number - piece->first));
      };
      add({position(at), position(end)});
      at = end + 1;
    }
    if (at <= last) find_singly(run, at, last);
  }

  void find_singly(const Hostlist::Run& run, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t number = first; number <= last && !is_over(); ++number) {
      std::string host = hosts_.name(run, number);
      const auto position = has_one_form_ ? std::nullopt : index_.find(host);
      if (position) {
        const auto id = static_cast<IdSet::Id>(*position);
        add({id, id});
      } else {
        found_.unknown.push_back(std::move(host));
      }
    }
  }

  void add(IdSet::Range positions) {
    if (found_.positions.size() == most_found_) throw Error(EINVAL, "hosts are named more than once");
    found_.positions.push_back(positions);
  }

  const HostIndex& index_;
  const Hostlist& hosts_;
  std::size_t most_unknown_;
  std::size_t most_found_;
  Found found_;
  // Stem of the last run, and the group that was found for it.
  std::uint32_t stem_ = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t width_ = 0;
  const Group* group_ = nullptr;
  bool has_one_form_ = false;
};

HostIndex::Found HostIndex::find(const Hostlist& hosts, std::size_t most_unknown,
                                 std::size_t most_found) const {
  return ListSearch(*this, hosts, most_unknown, most_found).run();
}

}  // namespace resourced::text
