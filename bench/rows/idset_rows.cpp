// Sets of ids (RFC 22): text and algebra.
#include <functional>
#include <utility>

#include "bench/load/limits.hpp"
#include "bench/load/workload.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {

using text::IdSet;

namespace {

using MakeSet = std::function<IdSet(std::uint64_t)>;

/// The size that has a bar, with the bar and the figure of Flux.
struct Held {
  std::uint64_t size;
  double bar;
  double peer;
};

IdSet solid(std::uint64_t size) { return IdSet::range(0, static_cast<IdSet::Id>(size - 1)); }

Row decode(std::string name, std::vector<std::uint64_t> sizes, const MakeSet& make, Held held,
           double growth) {
  Row row{.name = std::move(name), .of = "ids", .limit_name = "copy of the text", .growth_bar = growth};
  for (const std::uint64_t size : sizes) {
    row.points.push_back(
        {.size = size,
         .prepare = [size,
                     make] { return repeated([text = make(size).encode()] { return IdSet::parse(text); }); },
         .bar = size == held.size ? held.bar : 0,
         .peer = size == held.size ? held.peer : 0,
         .limit = Limits::copy([size, make] { return make(size).encode().size(); })});
  }
  return row;
}

Row encode(std::string name, std::vector<std::uint64_t> sizes, const MakeSet& make, Held held,
           double growth) {
  Row row{.name = std::move(name), .of = "ids", .limit_name = "copy of the text", .growth_bar = growth};
  for (const std::uint64_t size : sizes) {
    row.points.push_back(
        {.size = size,
         .prepare = [size, make] { return repeated([ids = make(size)] { return ids.encode(); }); },
         .bar = size == held.size ? held.bar : 0,
         .peer = size == held.size ? held.peer : 0,
         .limit = Limits::copy([size, make] { return make(size).encode().size(); })});
  }
  return row;
}

template <class Operation>
Row combine(std::string name, Operation operation, double peer) {
  Row row{.name = std::move(name), .of = "ids", .growth_bar = growth::linear};
  for (const std::uint64_t size : {1'024, 16'384, 131'072, 1'000'000}) {
    row.points.push_back({.size = size,
                          .prepare =
                              [size, operation] {
                                return repeated([all = solid(size), half = every_other(size), operation] {
                                  return operation(all, half);
                                });
                              },
                          .bar = size == 1'000'000 ? 1 * ms : 0,
                          .peer = size == 1'000'000 ? peer : 0});
  }
  return row;
}

}  // namespace

std::vector<Row> idset_rows() {
  const std::vector<std::uint64_t> ranges{1'024, 16'384, 131'072, 1'000'000};
  const std::vector<std::uint64_t> others{1'024, 16'384, 200'000, 1'048'576};
  const std::vector<std::uint64_t> halves{1'024, 16'384, 131'072, 1'048'576};
  return {
      decode("idset: decode a range", ranges, solid, {1'000'000, 1 * us, 74 * ms}, growth::flat),
      encode("idset: encode a range", ranges, solid, {1'000'000, 1 * us, 91 * ms}, growth::flat),
      decode("idset: decode every other id", others, every_other, {200'000, 1 * ms, 34 * ms}, growth::linear),
      encode("idset: encode every other id", others, every_other, {200'000, 1 * ms, 306 * ms},
             growth::linear),
      decode("idset: decode a random half", halves, random_half, {16'384, 100 * us, 2 * ms}, growth::linear),
      encode("idset: encode a random half", halves, random_half, {16'384, 100 * us, 1.6 * ms},
             growth::linear),
      combine(
          "idset: range | every other id", [](const IdSet& a, const IdSet& b) { return a | b; }, 113 * ms),
      combine(
          "idset: range & every other id", [](const IdSet& a, const IdSet& b) { return a & b; }, 91 * ms),
      combine(
          "idset: range - every other id", [](const IdSet& a, const IdSet& b) { return a - b; }, 149 * ms),
  };
}

}  // namespace resourced::bench
