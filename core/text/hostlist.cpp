#include "core/text/hostlist.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/host_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

bool Hostlist::empty() const noexcept { return runs_.empty(); }

std::size_t Hostlist::size() const noexcept {
  return runs_.empty() ? 0 : std::size_t{runs_.back().start} + runs_.back().count;
}

std::string_view Hostlist::prefix(const Stem& stem) const {
  return std::string_view(text_).substr(stem.offset, stem.prefix_size);
}

std::string_view Hostlist::suffix(const Stem& stem) const {
  return std::string_view(text_).substr(stem.offset + stem.prefix_size, stem.suffix_size);
}

bool Hostlist::is_stem(const Stem& stem, std::string_view prefix_text, std::string_view suffix_text) const {
  return prefix(stem) == prefix_text && suffix(stem) == suffix_text;
}

/// Returns the index of the run that holds a position.
std::size_t Hostlist::run_at(std::size_t position) const {
  assert(position < size());
  const auto after = std::partition_point(runs_.begin(), runs_.end(),
                                          [position](const Run& run) { return run.start <= position; });
  return static_cast<std::size_t>(after - runs_.begin()) - 1;
}

std::string Hostlist::name(const Run& run, std::uint64_t number) const {
  const Stem& stem = stems_[run.stem];
  std::string text(prefix(stem));
  if (run.width > 0) write_host_number(text, number, run.width);
  return text += suffix(stem);
}

void Hostlist::start_name(std::string& text, const Run& run) const {
  const Stem& stem = stems_[run.stem];
  text = prefix(stem);
  if (run.width > 0) write_host_number(text, run.first, run.width);
  text += suffix(stem);
}

std::string Hostlist::at(std::size_t position) const {
  const Run& run = runs_[run_at(position)];
  return name(run, run.first + (position - run.start));
}

std::optional<std::size_t> Hostlist::find(std::string_view host) const {
  std::uint32_t stem = std::numeric_limits<std::uint32_t>::max();
  std::optional<HostNumber> number;
  for (const Run& run : runs_) {
    if (run.stem != stem) {
      stem = run.stem;
      number = number_between(host, prefix(stems_[stem]), suffix(stems_[stem]));
    }
    if (run.width == 0) {
      if (host == prefix(stems_[stem])) return run.start;
    } else if (number && number->value - run.first < run.count && number->value >= run.first &&
               least_width(number->value, run.width) == number->width) {
      return run.start + (number->value - run.first);
    }
  }
  return std::nullopt;
}

void Hostlist::check_room(std::size_t more) const {
  if (more > max_size - size())
    throw Error(ERANGE, fmt::format("a list of hosts has at most {} of them", max_size));
}

void Hostlist::append(std::string_view host) {
  if (!is_host_name(host)) throw Error(EINVAL, fmt::format("{} is not a host name", quoted(host)));
  if (host.size() > max_host_name)
    throw Error(EINVAL, fmt::format("{} has more than {} characters", quoted(host), max_host_name));
  check_room(1);
  add_name(host);
}

void Hostlist::append(const Hostlist& other) {
  check_room(other.size());
  if (&other == this) {
    append(Hostlist(other));
    return;
  }
  for (const Run& run : other.runs_) add_part(other, run, 0, run.count);
}

Hostlist Hostlist::select(const IdSet& positions) const {
  Hostlist chosen;
  positions.for_each_range([&](IdSet::Range range) {
    std::size_t position = range.first;
    for (std::size_t i = run_at(position); position <= range.last; ++i) {
      const Run& run = runs_[i];
      const std::size_t end =
          std::min<std::size_t>(std::size_t{run.start} + run.count, std::size_t{range.last} + 1);
      chosen.add_part(*this, run, static_cast<std::uint32_t>(position - run.start),
                      static_cast<std::uint32_t>(end - position));
      position = end;
    }
  });
  return chosen;
}

std::uint32_t Hostlist::add_stem(std::string_view prefix_text, std::string_view suffix_text) {
  if (!runs_.empty() && is_stem(stems_[runs_.back().stem], prefix_text, suffix_text))
    return runs_.back().stem;
  stems_.push_back({.offset = text_.size(),
                    .prefix_size = static_cast<std::uint32_t>(prefix_text.size()),
                    .suffix_size = static_cast<std::uint32_t>(suffix_text.size())});
  text_.append(prefix_text).append(suffix_text);
  return static_cast<std::uint32_t>(stems_.size() - 1);
}

/// Splits the last host at this prefix and suffix, so that the next host can join its run. Returns false if
/// the last run has several hosts, or the host has another prefix or suffix.
bool Hostlist::restem_last(std::string_view prefix_text, std::string_view suffix_text) {
  if (runs_.empty() || runs_.back().count != 1) return false;
  Run& last = runs_.back();
  const auto number = number_between(name(last, last.first), prefix_text, suffix_text);
  if (!number) return false;
  last.stem = add_stem(prefix_text, suffix_text);
  last.first = number->value;
  last.width = number->width;
  return true;
}

/// Adds one host. If its name has several numbers, the run is formed by the number in which it differs from
/// the host before it.
void Hostlist::add_name(std::string_view host) {
  if (!runs_.empty() && runs_.back().width > 0) {
    const Run& last = runs_.back();
    const Stem& stem = stems_[last.stem];
    if (const auto number = number_between(host, prefix(stem), suffix(stem))) {
      add_run(last.stem, number->value, 1, number->width);
      return;
    }
    if (last.count == 1) {
      const std::string before = name(last, last.first);
      const auto difference = single_difference(before, host);
      if (difference && restem_last(difference->a.prefix, difference->a.suffix)) {
        const HostNumber number = read_host_number(difference->digits_of_b);
        add_run(runs_.back().stem, number.value, 1, number.width);
        return;
      }
    }
  }
  const HostNameParts parts = split_host_name(host);
  if (parts.digits.empty()) {
    add_run(add_stem(host, {}), 0, 1, 0);
  } else {
    const HostNumber number = read_host_number(parts.digits);
    add_run(add_stem(parts.prefix, parts.suffix), number.value, 1, number.width);
  }
}

/// Adds consecutive hosts: numbers of at least `width` digits between a prefix and a suffix.
void Hostlist::add_range(std::string_view prefix_text, std::string_view suffix_text, std::uint64_t first,
                         std::uint32_t count, std::uint32_t width) {
  if (count > 1 && !runs_.empty() && !is_stem(stems_[runs_.back().stem], prefix_text, suffix_text))
    restem_last(prefix_text, suffix_text);
  add_run(add_stem(prefix_text, suffix_text), first, count, least_width(first, width));
}

/// Adds a run, or extends the last one if the new run continues it.
void Hostlist::add_run(std::uint32_t stem, std::uint64_t first, std::uint32_t count, std::uint32_t width) {
  if (!runs_.empty() && width > 0) {
    Run& last = runs_.back();
    if (last.stem == stem && last.width > 0 && last.first + last.count == first &&
        least_width(first, last.width) == width) {
      last.count += count;
      return;
    }
  }
  runs_.push_back({.first = first,
                   .count = count,
                   .start = static_cast<std::uint32_t>(size()),
                   .width = width,
                   .stem = stem});
}

/// Adds hosts of a run of another list.
void Hostlist::add_part(const Hostlist& other, const Run& run, std::uint32_t skip, std::uint32_t count) {
  const Stem& stem = other.stems_[run.stem];
  const std::string_view prefix_text = other.prefix(stem);
  const std::string_view suffix_text = other.suffix(stem);
  const std::uint64_t first = run.first + skip;
  const bool same_stem = !runs_.empty() && is_stem(stems_[runs_.back().stem], prefix_text, suffix_text);
  if (run.width == 0 || (count == 1 && !same_stem && !runs_.empty())) {
    add_name(other.name(run, first));
  } else {
    add_range(prefix_text, suffix_text, first, count, run.width);
  }
}

bool Hostlist::matches(std::size_t at, const Hostlist& other, std::size_t other_at, std::size_t count) const {
  if (count == 0) return true;
  std::size_t run = run_at(at);
  std::size_t other_run = other.run_at(other_at);
  for (std::size_t left = count;;) {
    const Run& mine = runs_[run];
    const Run& theirs = other.runs_[other_run];
    const std::uint64_t number = mine.first + (at - mine.start);
    const std::uint64_t other_number = theirs.first + (other_at - theirs.start);
    const Stem& stem = stems_[mine.stem];
    std::size_t same = 1;
    if (other.is_stem(other.stems_[theirs.stem], prefix(stem), suffix(stem))) {
      // If the first numbers are written alike, so are all others up to the end of the shorter run.
      const bool alike = number == other_number && (mine.width == 0) == (theirs.width == 0) &&
                         least_width(number, mine.width) == least_width(other_number, theirs.width);
      if (!alike) return false;
      same = std::min(mine.start + mine.count - at, theirs.start + theirs.count - other_at);
    } else if (name(mine, number) != other.name(theirs, other_number)) {
      return false;
    }
    if (same >= left) return true;
    left -= same;
    at += same;
    other_at += same;
    if (at == std::size_t{mine.start} + mine.count) ++run;
    if (other_at == std::size_t{theirs.start} + theirs.count) ++other_run;
  }
}

bool operator==(const Hostlist& a, const Hostlist& b) {
  return a.size() == b.size() && a.matches(0, b, 0, a.size());
}

}  // namespace resourced::text
