// The order of a Hostlist: sort() and unique().
//
// A short text can stand for millions of hosts, so ranges are not expanded: ranges that overlap are merged
// part by part, and the number of parts is bounded.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/text/digits.hpp"
#include "core/text/host_name.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/radix_sort.hpp"

namespace resourced::text {

/// Sorts runs by their first hosts, then merges those that overlap; the others stay whole.
class Hostlist::Sorter {
 public:
  explicit Sorter(const Hostlist& hosts) : hosts_(hosts), runs_(hosts.runs_) { order_stems(); }

  /// Joins runs of the same stem that have numbers in common.
  void drop_repeats() {
    drop_ = true;
    std::vector<Run> parts;
    parts.reserve(runs_.size());
    for (const Run& run : runs_) split_by_width(run, parts);
    radix_sort(parts, by_number);
    radix_sort(parts, by_width);
    radix_sort(parts, by_stem);
    runs_.clear();
    for (const Run& part : parts) {
      if (!runs_.empty() && runs_.back().stem == part.stem && runs_.back().width == part.width &&
          part.first <= last(runs_.back())) {
        Run& before = runs_.back();
        before.count = static_cast<std::uint32_t>(std::max(last(before), last(part)) - before.first + 1);
      } else {
        runs_.push_back(part);
      }
    }
  }

  [[nodiscard]] Hostlist sorted() {
    // Radix sorts by stem and number first: they mostly give the order, and are faster than comparing names.
    const auto before = [this](const Run& a, const Run& b) {
      return std::is_lt(compare(a, a.first, b, b.first));
    };
    if (!std::is_sorted(runs_.begin(), runs_.end(), before)) {
      radix_sort(runs_, by_width);
      radix_sort(runs_, by_number);
      radix_sort(runs_, by_stem);
      if (!std::is_sorted(runs_.begin(), runs_.end(), before)) std::sort(runs_.begin(), runs_.end(), before);
    }
    Hostlist result;
    for (std::size_t begin = 0; begin < runs_.size();) {
      std::size_t end = begin + 1;
      for (std::size_t highest = begin; end < runs_.size() && !is_above(runs_[end], runs_[highest]); ++end) {
        if (std::is_gt(compare(runs_[end], last(runs_[end]), runs_[highest], last(runs_[highest]))))
          highest = end;
      }
      end == begin + 1 ? add_run(runs_[begin], result) : merge_runs(begin, end, result);
      begin = end;
    }
    return result;
  }

 private:
  static constexpr auto by_number = [](const Run& run) { return run.first; };
  static constexpr auto by_width = [](const Run& run) { return std::uint64_t{run.width}; };
  static constexpr auto by_stem = [](const Run& run) { return std::uint64_t{run.stem}; };
  static constexpr std::uint32_t no_stem = std::numeric_limits<std::uint32_t>::max();

  // Upper bounds of the number of parts that merging makes, and of the characters in the names of their first
  // hosts. The result may contain all of them.
  static constexpr std::size_t max_parts = 2 * max_expansion;
  static constexpr std::size_t max_part_names = std::size_t{64} << 20;

  static std::uint64_t last(const Run& run) { return run.first + (run.count - 1); }

  [[nodiscard]] Run original(Run run) const {
    run.stem = stems_[run.stem];
    return run;
  }
  [[nodiscard]] const Stem& stem(const Run& run) const { return hosts_.stems_[stems_[run.stem]]; }
  [[nodiscard]] std::string name(const Run& run, std::uint64_t number) const {
    return hosts_.name(original(run), number);
  }

  /// Renumbers the stems in the order of their prefixes, and gives equal ones the same number.
  void order_stems() {
    std::vector<std::uint32_t> order(hosts_.stems_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto compare_stems = [this](std::uint32_t a, std::uint32_t b) {
      const auto by_prefix =
          compare_host_names(hosts_.prefix(hosts_.stems_[a]), hosts_.prefix(hosts_.stems_[b]));
      return std::is_neq(by_prefix) ? by_prefix
                                    : hosts_.suffix(hosts_.stems_[a]) <=> hosts_.suffix(hosts_.stems_[b]);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::is_lt(compare_stems(a, b)); });
    std::vector<std::uint32_t> rank(order.size());
    for (const std::uint32_t stem : order) {
      if (stems_.empty() || std::is_neq(compare_stems(stems_.back(), stem))) stems_.push_back(stem);
      rank[stem] = static_cast<std::uint32_t>(stems_.size() - 1);
    }
    for (const std::uint32_t stem : stems_) {
      const std::string_view prefix = hosts_.prefix(hosts_.stems_[stem]);
      numeric_.push_back(prefix.empty() || !is_digit(prefix.back()));
    }
    for (Run& run : runs_) run.stem = rank[run.stem];
  }

  static void split_by_width(const Run& run, std::vector<Run>& parts) {
    const std::uint64_t plain = run.width > 1 ? smallest_with_digits(run.width) : run.first;
    if (run.width <= 1 || last(run) < plain) {
      parts.push_back(run);
      return;
    }
    Run padded = run;
    padded.count = static_cast<std::uint32_t>(plain - run.first);
    Run rest = run;
    rest.first = plain;
    rest.count = run.count - padded.count;
    rest.width = 1;
    parts.push_back(padded);
    parts.push_back(rest);
  }

  [[nodiscard]] std::strong_ordering compare(const Run& a, std::uint64_t number_a, const Run& b,
                                             std::uint64_t number_b) const {
    if (by_numbers(a, b)) {
      if (number_a != number_b) return number_a <=> number_b;
      return least_width(number_a, a.width) <=> least_width(number_b, b.width);
    }
    const std::string_view prefix_a = hosts_.prefix(stem(a));
    const std::string_view prefix_b = hosts_.prefix(stem(b));
    const auto [at_a, at_b] =
        std::mismatch(prefix_a.begin(), prefix_a.end(), prefix_b.begin(), prefix_b.end());
    const bool decided =
        at_a != prefix_a.end() && at_b != prefix_b.end() && !is_digit(*at_a) && !is_digit(*at_b);
    if (decided) return *at_a <=> *at_b;
    return compare_host_names(name(a, number_a), name(b, number_b));
  }

  [[nodiscard]] bool is_above(const Run& run, const Run& other) const {
    return std::is_gt(compare(run, run.first, other, last(other)));
  }

  /// Adds a run that overlaps no other.
  void add_run(const Run& run, Hostlist& result) {
    if (run.stem == same_stem_) {
      result.add_run(result.runs_.back().stem, run.first, run.count, run.width);
      return;
    }
    result.add_part(hosts_, original(run), 0, run.count);
    const bool same = result.is_stem(result.stems_[result.runs_.back().stem], hosts_.prefix(stem(run)),
                                     hosts_.suffix(stem(run)));
    same_stem_ = same ? run.stem : no_stem;
  }

  /// The rest of a run that is being merged, with the name of its first host.
  struct Rest {
    Run run;
    std::string name;
  };

  /// Whether the numbers alone decide the order of two runs.
  [[nodiscard]] bool by_numbers(const Run& a, const Run& b) const {
    return a.stem == b.stem && a.width > 0 && b.width > 0 && numeric_[a.stem];
  }

  [[nodiscard]] std::strong_ordering compare(const Rest& a, const Rest& b) const {
    return by_numbers(a.run, b.run) ? compare(a.run, a.run.first, b.run, b.run.first)
                                    : compare_host_names(a.name, b.name);
  }

  /// Whether the host `skip` places after the first of a rest comes before the first host of another rest, or
  /// is equal to it.
  [[nodiscard]] bool is_up_to(const Rest& rest, std::uint64_t skip, const Rest& other) const {
    const std::uint64_t number = rest.run.first + skip;
    return std::is_lteq(by_numbers(rest.run, other.run)
                            ? compare(rest.run, number, other.run, other.run.first)
                            : compare_host_names(name(rest.run, number), other.name));
  }

  /// Number of hosts of a rest that come before the first host of another rest, or are equal to it. Requires
  /// that the first host does.
  [[nodiscard]] std::uint32_t count_up_to(const Rest& rest, const Rest& other) const {
    std::uint64_t last = 0;
    const auto goes_on = [&](std::uint64_t step) {
      if (last + step >= rest.run.count || !is_up_to(rest, last + step, other)) return false;
      last += step;
      return true;
    };
    std::uint64_t step = 1;
    while (goes_on(step)) step *= 2;
    for (step /= 2; step > 0; step /= 2) goes_on(step);
    return static_cast<std::uint32_t>(last + 1);
  }

  /// Adds the hosts of overlapping runs: first those hosts of the run with the least host that come before
  /// the hosts of the other runs, and so on. Throws ERANGE if that takes more than max_parts parts, or if the
  /// names exceed max_part_names.
  void merge_runs(std::size_t begin, std::size_t end, Hostlist& result) {
    const auto is_after = [this](const Rest& a, const Rest& b) { return std::is_gt(compare(a, b)); };
    std::vector<Rest> rests;
    const auto add = [&](const Run& run) {
      count_part(run);
      rests.push_back({run, name(run, run.first)});
      std::push_heap(rests.begin(), rests.end(), is_after);
    };
    for (std::size_t i = begin; i < end; ++i) add(runs_[i]);
    std::string before;
    while (!rests.empty()) {
      std::pop_heap(rests.begin(), rests.end(), is_after);
      const Rest rest = std::move(rests.back());
      rests.pop_back();
      // Runs of one stem no longer overlap, but runs of different stems can have the same name.
      const bool repeats = drop_ && rest.name == before;
      std::uint32_t count = 1;
      if (!repeats) {
        count = rests.empty() ? rest.run.count : count_up_to(rest, rests.front());
        // Adds the host by name, because it may join the host before it by another number than that of its
        // stem.
        result.add_name(rest.name);
        if (count > 1) result.add_part(hosts_, original(rest.run), 1, count - 1);
        if (drop_) before = name(rest.run, rest.run.first + (count - 1));
      }
      if (count == rest.run.count) continue;
      Run left = rest.run;
      left.first += count;
      left.count -= count;
      add(left);
    }
    same_stem_ = no_stem;
  }

  void count_part(const Run& run) {
    const Stem& part = stem(run);
    part_names_ += part.prefix_size + part.suffix_size + max_number_digits;
    if (++parts_ > max_parts || part_names_ > max_part_names)
      throw Error(ERANGE, "too many hosts in ranges that overlap to sort them");
  }

  const Hostlist& hosts_;
  // The runs of the list. Their stems are indices into stems_, which has the stems of the list in the order
  // of the names.
  std::vector<Run> runs_;
  std::vector<std::uint32_t> stems_;
  // For each stem, whether its hosts have the order of their numbers. They do not if the prefix ends in
  // digits, because names compare those digits as a part of the number.
  std::vector<bool> numeric_;
  // Stem of the last run of the result, if the list has the same stem; else no_stem.
  std::uint32_t same_stem_ = no_stem;
  std::size_t parts_ = 0;
  std::size_t part_names_ = 0;
  bool drop_ = false;
};

void Hostlist::sort() { *this = Sorter(*this).sorted(); }

void Hostlist::unique() {
  Sorter sorter(*this);
  sorter.drop_repeats();
  *this = sorter.sorted();
}

}  // namespace resourced::text
