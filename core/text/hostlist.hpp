// An ordered list of host names, repeats allowed, and its compressed text form (RFC 29).
// The list is kept as runs `prefix[first-last]suffix`, so its cost follows the expressions, not the hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/host_index.hpp"
#include "core/text/idset.hpp"

#pragma GCC visibility push(default)
namespace resourced::text {

class Hostlist {
 public:
  /// The most hosts that one bracketed expression may stand for.
  static constexpr std::size_t max_expansion = std::size_t{1} << 20;
  /// The most hosts of a list: its positions are ids.
  static constexpr std::size_t max_size = std::size_t{IdSet::max_id} + 1;

  Hostlist() = default;

  /// Reads RFC 29 text. Throws Error EINVAL that shows the text and the place, or ERANGE for an expression
  /// of more than max_expansion hosts or a list of more than max_size.
  [[nodiscard]] static Hostlist parse(std::string_view text);

  /// Compressed text; the order is kept. No expression is larger than parse() reads.
  [[nodiscard]] std::string encode() const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// The host at a position. Requires position < size().
  [[nodiscard]] std::string at(std::size_t position) const;
  /// The first position of a host. Linear in the runs; HostIndex is for many look-ups.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

  /// Adds one host name, which is not parsed. Throws Error EINVAL if it is not a host name: printable ASCII
  /// without blanks, brackets and commas, at most 1024 characters. Throws ERANGE beyond max_size.
  void append(std::string_view host);
  void append(const Hostlist& other);
  /// The hosts at these positions, in order. Requires positions below size().
  [[nodiscard]] Hostlist select(const IdSet& positions) const;

  /// Orders by prefix, then number, then suffix: `foo2-x` before `foo10-a`, `foo1` before `foo01`, and so on
  /// with further numbers in the suffix. The cost follows the runs, and the parts into which overlapping runs
  /// are split; throws Error ERANGE for more than twice max_expansion parts, or 64 MiB of names of their
  /// first hosts.
  void sort();
  /// Sorts and drops repeats. Costs and throws as sort() does; repeats in ranges of one prefix and suffix are
  /// free.
  void unique();

  /// The same hosts in the same order.
  friend bool operator==(const Hostlist& a, const Hostlist& b);

  /// Calls f(std::string_view) for each host, in order. The view is valid during the call.
  template <class F>
  void for_each(F&& f) const {
    std::string name;
    for (const Run& run : runs_) {
      start_name(name, run);
      f(std::string_view(name));
      for (std::uint32_t i = 1; i < run.count; ++i) {
        step_name(name, run);
        f(std::string_view(name));
      }
    }
  }

 private:
  friend class HostIndex;
  class Sorter;

  /// A prefix and a suffix, one after the other in text_.
  struct Stem {
    std::size_t offset;
    std::uint32_t prefix_size;
    std::uint32_t suffix_size;
  };

  /// Hosts with consecutive numbers between the same prefix and suffix.
  struct Run {
    std::uint64_t first;
    std::uint32_t count;
    /// The position of the first host in the list.
    std::uint32_t start;
    /// The least number of digits, 1 without leading zeros; 0 for a single host without a number. Always the
    /// least_width() of the first number.
    std::uint32_t width;
    std::uint32_t stem;
  };

  [[nodiscard]] std::string_view prefix(const Stem& stem) const;
  [[nodiscard]] std::string_view suffix(const Stem& stem) const;
  [[nodiscard]] bool is_stem(const Stem& stem, std::string_view prefix, std::string_view suffix) const;
  [[nodiscard]] std::size_t run_at(std::size_t position) const;
  [[nodiscard]] std::string name(const Run& run, std::uint64_t number) const;

  void start_name(std::string& name, const Run& run) const;
  void step_name(std::string& name, const Run& run) const {
    const Stem& stem = stems_[run.stem];
    for (std::size_t i = name.size() - stem.suffix_size; i > stem.prefix_size;) {
      if (name[--i] != '9') {
        ++name[i];
        return;
      }
      name[i] = '0';
    }
    name.insert(stem.prefix_size, 1, '1');
  }

  void check_room(std::size_t more) const;
  std::uint32_t add_stem(std::string_view prefix, std::string_view suffix);
  void add_name(std::string_view host);
  void add_range(std::string_view prefix, std::string_view suffix, std::uint64_t first, std::uint32_t count,
                 std::uint32_t width);
  void add_numbers(std::string_view prefix, std::string_view suffix, std::uint64_t first, std::uint32_t count,
                   std::uint32_t width);
  void add_run(std::uint32_t stem, std::uint64_t first, std::uint32_t count, std::uint32_t width);
  void add_part(const Hostlist& other, const Run& run, std::uint32_t skip, std::uint32_t count);
  bool restem_last(std::string_view prefix, std::string_view suffix);

  std::vector<Run> runs_;
  std::vector<Stem> stems_;
  std::string text_;
};

}  // namespace resourced::text
#pragma GCC visibility pop
