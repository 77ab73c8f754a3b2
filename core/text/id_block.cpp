#include "core/text/id_block.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace resourced::text {

namespace {

using Span = IdBlock::Span;
using View = IdBlock::View;

// The words of a block take 8 KiB, spans 4 bytes each. The gap between the two limits keeps a block that
// gains and loses an id repeatedly from being rewritten each time.
constexpr std::size_t few_spans = IdBlock::most_spans / 2;

constexpr std::uint64_t bit(std::uint32_t offset) { return std::uint64_t{1} << (offset % 64); }

bool test(const std::uint64_t* words, std::uint32_t offset) {
  return (words[offset / 64] & bit(offset)) != 0;
}

/// Calls f(i, bits) for each word that the span touches until it returns false. Returns true if every call
/// did.
template <class F>
bool all_words(Span span, F&& f) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const std::uint32_t end = span.last / 64U;
  const std::uint64_t end_bits = all >> (63 - span.last % 64U);
  std::uint32_t i = span.first / 64U;
  std::uint64_t bits = all << (span.first % 64U);
  for (; i < end; ++i, bits = all) {
    if (!f(i, bits)) return false;
  }
  return f(end, bits & end_bits);
}

void clear_bits(std::uint64_t* words, Span span) {
  all_words(span, [words](std::uint32_t i, std::uint64_t bits) { return words[i] &= ~bits, true; });
}

bool spans_intersect(std::span<const Span> a, std::span<const Span> b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].last < b[j].first) {
      ++i;
    } else if (b[j].last < a[i].first) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

bool spans_include(std::span<const Span> a, std::span<const Span> b) {
  std::size_t i = 0;
  return std::all_of(b.begin(), b.end(), [&](Span span) {
    while (i < a.size() && a[i].last < span.first) ++i;
    return i < a.size() && a[i].first <= span.first && span.last <= a[i].last;
  });
}

/// Walks the edges of both lists in order and collects the spans of the result.
std::vector<Span> combine(SetOp op, std::span<const Span> a, std::span<const Span> b) {
  std::vector<Span> result;
  result.reserve(a.size() + b.size());
  bool in_a = false;
  bool in_b = false;
  bool inside = false;
  std::uint32_t begin = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  const auto edge = [](std::span<const Span> spans, std::size_t at, bool in) -> std::uint32_t {
    if (at == spans.size()) return IdBlock::size + 1;
    return in ? spans[at].last + 1U : spans[at].first;
  };
  while (i < a.size() || j < b.size()) {
    const std::uint32_t edge_a = edge(a, i, in_a);
    const std::uint32_t edge_b = edge(b, j, in_b);
    const std::uint32_t here = std::min(edge_a, edge_b);
    if (edge_a == here) i += std::exchange(in_a, !in_a) ? 1 : 0;
    if (edge_b == here) j += std::exchange(in_b, !in_b) ? 1 : 0;
    if (keeps(op, in_a, in_b) == inside) continue;
    if (inside) {
      result.push_back({static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(here - 1)});
    } else {
      begin = here;
    }
    inside = !inside;
  }
  return result;
}

}  // namespace

IdBlock::IdBlock(std::vector<Span> spans) : spans_(std::move(spans)) {
  recount();
  choose_form();
}

IdBlock::IdBlock(std::vector<std::uint64_t> words) : words_(std::move(words)) {
  assert(words_.size() == word_count);
  recount();
  choose_form();
}

void IdBlock::set_bits(std::uint64_t* words, Span span) {
  all_words(span, [words](std::uint32_t i, std::uint64_t bits) { return words[i] |= bits, true; });
}

IdBlock::View IdBlock::view() const noexcept { return {spans_, words_.empty() ? nullptr : words_.data()}; }

bool IdBlock::contains(std::uint16_t offset) const noexcept {
  if (!words_.empty()) return test(words_.data(), offset);
  return at_or_after(offset) == offset;
}

std::optional<std::uint16_t> IdBlock::at_or_after(std::uint16_t offset) const noexcept {
  if (words_.empty()) {
    const auto at =
        std::partition_point(spans_.begin(), spans_.end(), [offset](Span s) { return s.last < offset; });
    if (at == spans_.end()) return std::nullopt;
    return std::max(at->first, offset);
  }
  std::size_t i = offset / 64U;
  std::uint64_t word = words_[i] & (~std::uint64_t{0} << (offset % 64U));
  while (word == 0 && ++i < word_count) word = words_[i];
  if (word == 0) return std::nullopt;
  return static_cast<std::uint16_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
}

std::uint16_t IdBlock::first() const noexcept {
  assert(count_ > 0);
  return *at_or_after(0);
}

std::uint16_t IdBlock::last() const noexcept {
  assert(count_ > 0);
  if (words_.empty()) return spans_.back().last;
  std::size_t i = word_count - 1;
  while (words_[i] == 0) --i;
  return static_cast<std::uint16_t>(i * 64 + 63 - static_cast<std::size_t>(std::countl_zero(words_[i])));
}

void IdBlock::insert(std::uint16_t offset) {
  if (contains(offset)) return;
  const bool joins_left = offset > 0 && contains(static_cast<std::uint16_t>(offset - 1));
  const bool joins_right = offset + 1U < size && contains(static_cast<std::uint16_t>(offset + 1));
  ++count_;
  runs_ = runs_ + 1U - (joins_left ? 1U : 0U) - (joins_right ? 1U : 0U);
  if (words_.empty()) {
    insert_in_spans(offset);
  } else {
    words_[offset / 64U] |= bit(offset);
  }
  choose_form();
}

void IdBlock::erase(std::uint16_t offset) {
  if (!contains(offset)) return;
  const bool leaves_left = offset > 0 && contains(static_cast<std::uint16_t>(offset - 1));
  const bool leaves_right = offset + 1U < size && contains(static_cast<std::uint16_t>(offset + 1));
  --count_;
  runs_ = runs_ + (leaves_left ? 1U : 0U) + (leaves_right ? 1U : 0U) - 1U;
  if (words_.empty()) {
    erase_in_spans(offset);
  } else {
    words_[offset / 64U] &= ~bit(offset);
  }
  choose_form();
}

/// Returns the first span that does not end before the offset.
std::vector<Span>::iterator IdBlock::span_from(std::uint16_t offset) noexcept {
  return std::partition_point(spans_.begin(), spans_.end(), [offset](Span s) { return s.last < offset; });
}

void IdBlock::insert_in_spans(std::uint16_t offset) {
  const auto right = span_from(offset);
  const bool joins_right = right != spans_.end() && right->first == offset + 1U;
  if (right != spans_.begin() && (right - 1)->last + 1U == offset) {
    (right - 1)->last = joins_right ? right->last : offset;
    if (joins_right) spans_.erase(right);
  } else if (joins_right) {
    right->first = offset;
  } else {
    spans_.insert(right, {offset, offset});
  }
}

void IdBlock::erase_in_spans(std::uint16_t offset) {
  const auto at = span_from(offset);
  const Span whole = *at;
  const auto before = static_cast<std::uint16_t>(offset - 1);
  const auto after = static_cast<std::uint16_t>(offset + 1);
  if (whole.first == offset && whole.last == offset) {
    spans_.erase(at);
  } else if (whole.first == offset) {
    at->first = after;
  } else {
    at->last = before;
    if (whole.last != offset) spans_.insert(at + 1, {after, whole.last});
  }
}

void IdBlock::apply(SetOp op, View other) {
  const bool few = words_.empty() && other.words == nullptr;
  if (few) {
    spans_ = combine(op, spans_, other.spans);
  } else {
    if (words_.empty()) to_words();
    apply_to_words(op, other);
  }
  recount();
  choose_form();
}

void IdBlock::apply_to_words(SetOp op, View other) {
  if (other.words != nullptr) {
    for (std::size_t i = 0; i < word_count; ++i) {
      const std::uint64_t mine = words_[i];
      const std::uint64_t theirs = other.words[i];
      words_[i] = op == SetOp::unite       ? mine | theirs
                  : op == SetOp::intersect ? mine & theirs
                                           : mine & ~theirs;
    }
    return;
  }
  if (op != SetOp::intersect) {
    for (const Span span : other.spans)
      op == SetOp::unite ? set_bits(words_.data(), span) : clear_bits(words_.data(), span);
    return;
  }
  std::uint32_t next = 0;
  const auto clear_up_to = [&](std::uint32_t end) {
    if (next < end)
      clear_bits(words_.data(), {static_cast<std::uint16_t>(next), static_cast<std::uint16_t>(end - 1)});
  };
  for (const Span span : other.spans) {
    clear_up_to(span.first);
    next = span.last + 1U;
  }
  clear_up_to(size);
}

void IdBlock::to_words() {
  words_.assign(word_count, 0);
  for (const Span span : spans_) set_bits(words_.data(), span);
  spans_ = {};
}

void IdBlock::to_spans() {
  std::vector<Span> spans;
  spans.reserve(runs_);
  for_each_span([&spans](std::uint32_t first, std::uint32_t last) {
    spans.push_back({static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)});
  });
  spans_ = std::move(spans);
  words_ = {};
}

void IdBlock::choose_form() {
  if (words_.empty() && runs_ > most_spans) {
    to_words();
  } else if (!words_.empty() && runs_ < few_spans) {
    to_spans();
  }
}

void IdBlock::recount() noexcept {
  count_ = 0;
  runs_ = 0;
  if (words_.empty()) {
    for (const Span span : spans_) count_ += span.last - span.first + 1U;
    runs_ = static_cast<std::uint32_t>(spans_.size());
    return;
  }
  std::uint64_t before = 0;
  for (const std::uint64_t word : words_) {
    count_ += static_cast<std::uint32_t>(std::popcount(word));
    runs_ += static_cast<std::uint32_t>(std::popcount(word & ~(word << 1 | before >> 63)));
    before = word;
  }
}

bool IdBlock::intersect(View a, View b) noexcept {
  if (a.words == nullptr && b.words == nullptr) return spans_intersect(a.spans, b.spans);
  if (a.words == nullptr) std::swap(a, b);
  if (b.words == nullptr) {
    return std::any_of(b.spans.begin(), b.spans.end(), [&](Span span) {
      return !all_words(span, [&](std::uint32_t i, std::uint64_t bits) { return (a.words[i] & bits) == 0; });
    });
  }
  for (std::size_t i = 0; i < word_count; ++i) {
    if ((a.words[i] & b.words[i]) != 0) return true;
  }
  return false;
}

bool IdBlock::includes(View a, View b) noexcept {
  if (a.words == nullptr && b.words == nullptr) return spans_include(a.spans, b.spans);
  if (b.words == nullptr) {
    return std::all_of(b.spans.begin(), b.spans.end(), [&](Span span) {
      return all_words(span, [&](std::uint32_t i, std::uint64_t bits) { return (~a.words[i] & bits) == 0; });
    });
  }
  std::array<std::uint64_t, word_count> spread;
  if (a.words == nullptr) {
    spread.fill(0);
    for (const Span span : a.spans) IdBlock::set_bits(spread.data(), span);
    a.words = spread.data();
  }
  for (std::size_t i = 0; i < word_count; ++i) {
    if ((b.words[i] & ~a.words[i]) != 0) return false;
  }
  return true;
}

bool operator==(const IdBlock& a, const IdBlock& b) noexcept {
  if (a.count_ != b.count_ || a.runs_ != b.runs_) return false;
  if (a.words_.empty() == b.words_.empty()) return a.spans_ == b.spans_ && a.words_ == b.words_;
  return IdBlock::includes(a.view(), b.view());
}

}  // namespace resourced::text
