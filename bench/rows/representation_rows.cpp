// Representations of a set of ids side by side, on typical sets of clusters.
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>

#include "bench/load/workload.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/other_sets.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {

using text::IdSet;

namespace {

constexpr std::uint64_t span = 1'048'576;

/// Two sets that are combined; each has `span` as its end, so that dense words have the same length.
struct Kind {
  const char* name;
  IdSet first;
  IdSet second;
};

std::vector<Kind> kinds() {
  constexpr auto last = static_cast<IdSet::Id>(span - 1);
  IdSet other_half = IdSet::range(0, last) - random_half(span);
  other_half.insert(0, span / 4);
  return {{"contiguous halves", IdSet::range(0, last), IdSet::range(span / 2, last)},
          {"contiguous and 100 scattered ids", IdSet::range(0, last), scattered(100, span) | IdSet{last}},
          {"every other id and contiguous", every_other(span) | IdSet{last}, IdSet::range(span / 2, last)},
          {"random halves", random_half(span) | IdSet{last}, other_half}};
}

template <class Set>
Prepare unite(const Kind& kind) {
  return [kind] { return repeated([a = Set(kind.first), b = Set(kind.second)] { return a | b; }); };
}

template <class Set>
Prepare intersect(const Kind& kind) {
  return [kind] { return repeated([a = Set(kind.first), b = Set(kind.second)] { return a & b; }); };
}

/// Erases and inserts a random id, like a drain and an undrain.
template <class Set>
Prepare change(const Kind& kind) {
  return [kind] {
    return repeated([set = Set(kind.first), random = std::mt19937(7)]() mutable {
      const auto id = static_cast<IdSet::Id>(random() % span);
      set.erase(id);
      set.insert(id);
      return 0;
    });
  };
}

double allocated() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

template <class Set>
Prepare memory(const Kind& kind) {
  return [kind]() -> Sampler {
    return [kind] {
      // Number of copies that makes memory which the allocator kept earlier insignificant.
      constexpr int copies = 64;
      std::vector<std::unique_ptr<std::pair<Set, Set>>> pairs(copies);
      const double before = allocated();
      for (auto& pair : pairs)
        pair = std::make_unique<std::pair<Set, Set>>(Set(kind.first), Set(kind.second));
      return (allocated() - before) / copies;
    };
  };
}

/// A row with a point for each representation.
#ifdef RESOURCED_BENCH_ROARING
#define RESOURCED_BENCH_POINTS(work, kind)                                             \
  {                                                                                    \
    point(work<IntervalSet>(kind), "intervals"), point(work<DenseSet>(kind), "words"), \
        point(work<RoaringSet>(kind), "CRoaring"), point(work<IdSet>(kind), "IdSet")   \
  }
#else
#define RESOURCED_BENCH_POINTS(work, kind)                                             \
  {                                                                                    \
    point(work<IntervalSet>(kind), "intervals"), point(work<DenseSet>(kind), "words"), \
        point(work<IdSet>(kind), "IdSet")                                              \
  }
#endif

Point point(Prepare prepare, const char* label) {
  return {.size = span, .prepare = std::move(prepare), .label = label};
}

Row row(const char* work, const Kind& kind, std::vector<Point> points) {
  return {.name = fmt::format("sets: {}, {}", work, kind.name),
          .of = "ids",
          .most_turns = 50,
          .points = std::move(points)};
}

}  // namespace

std::vector<Row> representation_rows() {
  std::vector<Row> rows;
  for (const Kind& kind : kinds()) {
    rows.push_back(row("union", kind, RESOURCED_BENCH_POINTS(unite, kind)));
    rows.push_back(row("intersection", kind, RESOURCED_BENCH_POINTS(intersect, kind)));
    rows.push_back(row("one id out and in", kind, RESOURCED_BENCH_POINTS(change, kind)));
    rows.push_back(row("memory of both", kind, RESOURCED_BENCH_POINTS(memory, kind)));
    rows.back().unit = Unit::bytes;
  }
  return rows;
}

}  // namespace resourced::bench
