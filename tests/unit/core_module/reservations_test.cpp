// Partitions that are reserved for their former holders after a takeover.
#include "core/module/reservations.hpp"

#include <optional>
#include <string>

#include <doctest/doctest.h>

namespace resourced::module {
namespace {

const Actor first = ByUser{1000};
const Actor second = ByKey{"login1"};
const SteadyTime start = steady_time(500);

/// The actor for whom a partition is reserved, if that is another one than `by`.
std::optional<Actor> refusal(const Reservations& kept, const std::string& partition,
                             const std::optional<Actor>& by, SteadyTime now) {
  const auto reserved = kept.against(partition, by, now);
  if (!reserved) return std::nullopt;
  CHECK(reserved->until == start + Seconds(10));
  return reserved->holder;
}

}  // namespace

TEST_SUITE_BEGIN("reservations");

TEST_CASE("without a takeover nothing is kept") {
  const Reservations none;
  CHECK_FALSE(refusal(none, "", first, SteadyTime{}));
  CHECK(none.all(SteadyTime{}).empty());
}

TEST_CASE("a partition is kept for its former holder, and for nobody after ten seconds") {
  Reservations kept;
  kept.begin({{"batch", first}, {"", second}}, start);
  CHECK_FALSE(refusal(kept, "batch", first, start));
  CHECK(refusal(kept, "batch", second, start + Seconds(2.5)) == first);
  CHECK(refusal(kept, "", first, start) == second);
  CHECK(refusal(kept, "batch", std::nullopt, start) == first);
  CHECK(refusal(kept, "batch", ByKey{"login2"}, start) == first);
  CHECK_FALSE(refusal(kept, "other", second, start));
  CHECK(refusal(kept, "batch", second, start + Seconds(9.99)));
  CHECK_FALSE(refusal(kept, "batch", second, start + Seconds(10)));
  CHECK_FALSE(refusal(kept, "", first, start + Seconds(10)));
}

TEST_CASE("once the holder is back, its partition is kept no more, and the others are") {
  Reservations kept;
  kept.begin({{"batch", first}, {"night", first}}, start);
  kept.end("batch");
  CHECK_FALSE(refusal(kept, "batch", second, start));
  CHECK(refusal(kept, "night", second, start));
  CHECK(kept.all(start) == std::vector<PartitionHolder>{{"night", first}});
  CHECK(kept.all(start + Seconds(10)).empty());
}

TEST_SUITE_END();

}  // namespace resourced::module
