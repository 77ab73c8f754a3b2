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
  /// Maximum number of hosts of one bracketed expression.
  static constexpr std::size_t max_expansion = std::size_t{1} << 20;
  /// Maximum number of hosts of a list: positions are ids of an IdSet.
  static constexpr std::size_t max_size = std::size_t{IdSet::max_id} + 1;

  Hostlist() = default;

  /// Reads RFC 29 text. Throws Error EINVAL that shows the text and the place, or ERANGE for an expression
  /// of more than max_expansion hosts or a list of more than max_size.
  [[nodiscard]] static Hostlist parse(std::string_view text);

  /// Returns the compressed text; the order is kept. parse() accepts the size of each expression in it.
  [[nodiscard]] std::string encode() const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// Returns the host at a position. Requires position < size().
  [[nodiscard]] std::string at(std::size_t position) const;
  /// Returns the first position of a host. Linear in the runs: use HostIndex for many look-ups.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

  /// Adds one host name, which is not parsed. Throws Error EINVAL if it is not a host name: printable ASCII
  /// without blanks, brackets and commas, at most 1024 characters. Throws ERANGE beyond max_size.
  void append(std::string_view host);
  void append(const Hostlist& other);
  /// Returns the hosts at these positions, in order. Requires positions below size().
  [[nodiscard]] Hostlist select(const IdSet& positions) const;

  /// Sorts by prefix, then number, then suffix: `foo2-x` before `foo10-a`, `foo1` before `foo01`, and so on
  /// with further numbers in the suffix. The cost follows the runs, and the parts into which overlapping runs
  /// are split; throws Error ERANGE for more than twice max_expansion parts, or if the names of their first
  /// hosts exceed 64 MiB.
  void sort();
  /// Sorts the list and drops repeats. Costs and throws as sort() does; repeats in ranges of one prefix and
  /// suffix cost nothing.
  void unique();

  /// Whether `count` hosts from a position on are, in the same order, those of another list from `other_at`
  /// on. Requires at + count <= size(), and the same of the other list.
  [[nodiscard]] bool matches(std::size_t at, const Hostlist& other, std::size_t other_at,
                             std::size_t count) const;
  /// Compares content: two lists are equal if they have the same hosts in the same order.
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

  /// Position of a prefix and a suffix in text_, where the suffix follows the prefix.
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
    /// Minimum number of digits, 1 without leading zeros; 0 for a single host without a number. Always the
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
// A friend declaration alone is not exported.
bool operator==(const Hostlist& a, const Hostlist& b);

}  // namespace resourced::text
#pragma GCC visibility pop
