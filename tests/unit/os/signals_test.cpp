// Signals that the process sends to itself.
#include "os/signals.hpp"

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

using resourced::os::Signals;

namespace {

/// Restores the signal mask for the other tests of this program.
class KeptMask {
 public:
  KeptMask() { REQUIRE(pthread_sigmask(SIG_SETMASK, nullptr, &mask_) == 0); }
  ~KeptMask() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }
  KeptMask(const KeptMask&) = delete;
  KeptMask& operator=(const KeptMask&) = delete;

 private:
  sigset_t mask_{};
};

}  // namespace

TEST_SUITE("signals") {
  TEST_CASE_FIXTURE(KeptMask, "each signal is taken with its number") {
    boost::asio::io_context loop;
    std::vector<int> taken;
    const Signals signals(loop, [&](int number) { taken.push_back(number); });
    for (const int number : {SIGHUP, SIGTERM, SIGINT, SIGHUP}) {
      REQUIRE(std::raise(number) == 0);
      while (loop.run_one() > 0 && taken.empty()) continue;
      CHECK(taken == std::vector<int>{number});
      taken.clear();
    }
  }

  TEST_CASE_FIXTURE(KeptMask, "a signal that comes after one object has gone waits for the next one") {
    std::optional<boost::asio::io_context> loop(std::in_place);
    std::vector<int> taken;
    const auto take = [&](int number) { taken.push_back(number); };
    std::optional<Signals> signals(std::in_place, *loop, take);
    signals.reset();
    loop.emplace();
    REQUIRE(std::raise(SIGTERM) == 0);
    signals.emplace(*loop, take);
    while (taken.empty()) loop->run_one();
    CHECK(taken == std::vector<int>{SIGTERM});
  }

  TEST_CASE_FIXTURE(KeptMask, "a signal that one object has left is taken by the next one, once") {
    std::optional<boost::asio::io_context> loop(std::in_place);
    std::vector<int> taken;
    const auto take = [&](int number) { taken.push_back(number); };
    std::optional<Signals> signals(std::in_place, *loop, take);
    signals->leave(SIGHUP);
    signals->leave(std::nullopt);
    signals->leave(SIGHUP);
    signals.reset();
    loop.emplace();
    signals.emplace(*loop, take);
    while (taken.empty()) loop->run_one();
    signals.reset();
    loop.emplace();
    signals.emplace(*loop, take);
    REQUIRE(std::raise(SIGTERM) == 0);
    while (taken.size() < 2) loop->run_one();
    CHECK(taken == std::vector<int>{SIGHUP, SIGTERM});
  }

  TEST_CASE_FIXTURE(
      KeptMask,
      "a signal that was ignored is taken, as shells ignore SIGINT for programs in the background") {
    std::signal(SIGINT, SIG_IGN);
    boost::asio::io_context loop;
    std::vector<int> taken;
    const Signals signals(loop, [&](int number) { taken.push_back(number); });
    REQUIRE(std::raise(SIGINT) == 0);
    while (taken.empty()) loop.run_one();
    CHECK(taken == std::vector<int>{SIGINT});
  }
}
