#include "bench/load/workload.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "core/text/idset_builder.hpp"

namespace resourced::bench {

using text::IdSet;

namespace {

template <class Wanted>
IdSet ids_below(std::uint64_t span, Wanted wanted) {
  text::IdSetBuilder ids;
  for (std::uint64_t i = 0; i < span; ++i) {
    const auto id = static_cast<IdSet::Id>(i);
    if (wanted(id)) ids.append(id, id);
  }
  return ids.take();
}

std::vector<std::uint64_t> numbers(std::uint64_t count, bool shuffled) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (shuffled) std::shuffle(all.begin(), all.end(), std::mt19937(3));
  return all;
}

std::string joined(const std::vector<std::uint64_t>& all) {
  std::string text;
  for (const std::uint64_t number : all) fmt::format_to(std::back_inserter(text), "host{},", number);
  text.pop_back();
  return text;
}

}  // namespace

IdSet every_other(std::uint64_t span) {
  return ids_below(span, [](IdSet::Id id) { return id % 2 == 0; });
}

IdSet random_half(std::uint64_t span) {
  return ids_below(span, [random = std::mt19937(42)](IdSet::Id /*id*/) mutable { return random() % 2 == 0; });
}

IdSet scattered(std::uint64_t count, std::uint64_t span) {
  std::mt19937_64 random(8);
  IdSet ids;
  while (ids.count() < count) ids.insert(static_cast<IdSet::Id>(random() % span));
  return ids;
}

std::string single_names(std::uint64_t count, bool shuffled) { return joined(numbers(count, shuffled)); }

std::string equal_r(std::uint64_t size) {
  return fmt::format(
      R"({{"version":1,"execution":{{"R_lite":[{{"rank":"0-{0}","children":{{"core":"0-95","gpu":"0-3"}}}}],"starttime":0.0,"expiration":0.0,"nodelist":["node[0-{0}]"]}}}})",
      size - 1);
}

std::string mixed_r(std::uint64_t size) {
  std::string text = R"({"version":1,"execution":{"R_lite":[)";
  for (std::uint64_t rank = 0; rank < size; ++rank) {
    const std::uint64_t kind = rank * 31 % 64;
    fmt::format_to(std::back_inserter(text), R"({{"rank":"{}","children":{{"core":"0-{}","gpu":"0-{}"}}}},)",
                   rank, 31 + kind / 8, kind % 8);
  }
  text.pop_back();
  text += R"(],"starttime":0.0,"expiration":0.0,"nodelist":[")";
  text += single_names(size, true);
  text += R"("]}})";
  return text;
}

std::uint64_t mixed_names(std::uint64_t size) { return single_names(size, true).size() - (size - 1); }

}  // namespace resourced::bench
