// A start after a takeover: former holders may acquire first.
#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"

namespace resourced::engine {
namespace {

using text::Hostlist;
using text::IdSet;

const module::Actor former = module::ByUser{1000};
const module::Actor other = module::ByUser{1001};

/// Four targets, two of them in the partition `batch`.
struct Takeover {
  Takeover() {
    Start start;
    start.command.inventory = std::make_shared<const rset::ResourceSet>(
        rset::ResourceSet({{IdSet::range(0, 3), IdSet{0}, {}}}, Hostlist::parse("n[0-3]")));
    start.command.partitions.push_back({"batch", IdSet{0, 1}, {}});
    start.former_holders = {{"batch", former}, {"", former}, {"gone", former}};
    (void)engine.step(start, now);
  }
  int acquire(const std::optional<std::string>& partition, const module::Actor& by) {
    try {
      (void)engine.step(Acquire{++last, partition, false}, now, by);
    } catch (const Error& error) {
      return error.errnum();
    }
    return 0;
  }

  Engine engine;
  Now now{wall_time(1000), steady_time(5)};
  HolderId last = 0;
};

}  // namespace

TEST_SUITE_BEGIN("reservations at a start");

TEST_CASE_FIXTURE(Takeover,
                  "another one acquires a partition once its former holder was back, and has left") {
  CHECK(acquire("batch", other) == EBUSY);
  CHECK(acquire(std::nullopt, other) == EBUSY);
  CHECK(acquire("batch", former) == 0);
  CHECK(acquire("batch", other) == EBUSY);
  (void)engine.step(Release{last - 1}, now);
  CHECK(acquire("batch", other) == 0);
  CHECK(acquire(std::nullopt, other) == EBUSY);
  CHECK(acquire(std::nullopt, former) == 0);
}

TEST_CASE_FIXTURE(Takeover, "another one acquires after ten seconds") {
  now.steady += Seconds(9.9);
  CHECK(acquire("batch", other) == EBUSY);
  now.steady += Seconds(0.1);
  CHECK(acquire("batch", other) == 0);
  CHECK(acquire(std::nullopt, other) == 0);
}

TEST_CASE_FIXTURE(Takeover, "a partition that is gone is unknown to all") {
  CHECK(acquire("gone", other) == ENOENT);
  CHECK(acquire("gone", former) == ENOENT);
}

TEST_SUITE_END();

}  // namespace resourced::engine
