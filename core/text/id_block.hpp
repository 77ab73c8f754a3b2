// The ids of one aligned block of 65,536 as offsets from its base: sorted spans while they are few, a bit for
// each id when they are many. IdSet has such a block where the ids of an aligned range have gaps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
namespace resourced::text {

/// An operation of set algebra on two sets, the second of which is subtracted.
enum class SetOp : std::uint8_t { unite, intersect, subtract };

/// Whether the result of an operation has an id, given whether the first set and the second set have it.
constexpr bool keeps(SetOp op, bool in_first, bool in_second) {
  if (op == SetOp::unite) return in_first || in_second;
  if (op == SetOp::intersect) return in_first && in_second;
  return in_first && !in_second;
}

class IdBlock {
 public:
  static constexpr std::uint32_t size = 65536;
  static constexpr std::size_t word_count = size / 64;
  /// Maximum number of runs that a block keeps as spans.
  static constexpr std::size_t most_spans = 1024;

  /// Consecutive offsets, both ends included.
  struct Span {
    std::uint16_t first;
    std::uint16_t last;
    friend bool operator==(const Span&, const Span&) = default;
  };

  /// A read-only view of a block, or of a part of a solid range: words if not null, else ascending separate
  /// spans.
  struct View {
    std::span<const Span> spans;
    const std::uint64_t* words = nullptr;
  };

  /// Makes a block of spans, which ascend and do not touch.
  explicit IdBlock(std::vector<Span> spans);
  /// Makes a block of words: a bit for each offset, word_count words.
  explicit IdBlock(std::vector<std::uint64_t> words);

  /// Sets the bits of a span in word_count words.
  static void set_bits(std::uint64_t* words, Span span);

  [[nodiscard]] View view() const noexcept;
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// The number of maximal runs of consecutive offsets.
  [[nodiscard]] std::uint32_t runs() const noexcept { return runs_; }
  [[nodiscard]] bool contains(std::uint16_t offset) const noexcept;
  [[nodiscard]] std::optional<std::uint16_t> at_or_after(std::uint16_t offset) const noexcept;
  /// The smallest and the largest offset of a block. Both require a block that is not empty.
  [[nodiscard]] std::uint16_t first() const noexcept;
  [[nodiscard]] std::uint16_t last() const noexcept;

  void insert(std::uint16_t offset);
  void erase(std::uint16_t offset);
  void apply(SetOp op, View other);

  [[nodiscard]] static bool intersect(View a, View b) noexcept;
  [[nodiscard]] static bool includes(View a, View b) noexcept;
  /// Compares content: the same offsets may be spans on one side and words on the other.
  friend bool operator==(const IdBlock& a, const IdBlock& b) noexcept;

  /// Calls f(first, last) for each maximal run, in ascending order.
  template <class F>
  void for_each_span(F&& f) const {
    if (words_.empty()) {
      for (const Span span : spans_) f(std::uint32_t{span.first}, std::uint32_t{span.last});
    } else {
      for_each_span_of_words(f);
    }
  }

 private:
  template <class F>
  void for_each_span_of_words(F&& f) const {
    std::uint32_t start = 0;
    bool open = false;
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < word_count; ++i) {
      const std::uint64_t word = words_[i];
      const std::uint64_t after = i + 1 < word_count ? words_[i + 1] : 0;
      std::uint64_t starts = word & ~(word << 1 | before >> 63);
      for (std::uint64_t ends = word & ~(word >> 1 | after << 63); ends != 0; ends &= ends - 1) {
        if (!open) {
          start = i * 64 + static_cast<std::uint32_t>(std::countr_zero(starts));
          starts &= starts - 1;
        }
        f(start, i * 64 + static_cast<std::uint32_t>(std::countr_zero(ends)));
        open = false;
      }
      if (starts != 0) {
        start = i * 64 + static_cast<std::uint32_t>(std::countr_zero(starts));
        open = true;
      }
      before = word;
    }
  }

  [[nodiscard]] std::vector<Span>::iterator span_from(std::uint16_t offset) noexcept;
  void insert_in_spans(std::uint16_t offset);
  void erase_in_spans(std::uint16_t offset);
  void apply_to_spans(SetOp op, std::span<const Span> other);
  void apply_to_words(SetOp op, View other);
  void to_words();
  void to_spans();
  void choose_form();
  void recount() noexcept;

  // Spans or words: one of the two is in use, the other is empty.
  std::vector<Span> spans_;
  std::vector<std::uint64_t> words_;
  std::uint32_t count_ = 0;
  std::uint32_t runs_ = 0;
};

}  // namespace resourced::text
#pragma GCC visibility pop
