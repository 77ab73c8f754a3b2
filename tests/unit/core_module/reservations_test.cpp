// Partitions that are reserved for their former holders after a takeover.
#include "core/module/reservations.hpp"

#include <cerrno>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::module {
namespace {

const Actor first = ByUser{1000};
const Actor second = ByKey{"login1"};
const SteadyTime start = steady_time(500);

std::optional<std::string> refusal(const Reservations& kept, const std::string& partition,
                                   const std::optional<Actor>& by, SteadyTime now) {
  try {
    kept.check(partition, by, now);
  } catch (const Error& error) {
    CHECK(error.errnum() == EBUSY);
    return error.what();
  }
  return std::nullopt;
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
  CHECK(refusal(kept, "batch", second, start + Seconds(2.5)) ==
        "partition batch is kept for the former holder for another 8 s, as this daemon has just taken over: "
        "try again then");
  CHECK(refusal(kept, "", first, start)
            ->starts_with("the resources are kept for the former holder for another 10 s"));
  CHECK(refusal(kept, "batch", std::nullopt, start));
  CHECK(refusal(kept, "batch", ByKey{"login2"}, start));
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
