// Measures the time of one piece of work, or the average of work that is too short for the clock.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "bench/measure/row.hpp"

namespace resourced::bench {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Keeps the compiler from removing the computation of a value.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

/// Returns the time of one call.
template <class Work>
[[nodiscard]] double time_of(Work&& work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

/// Returns a sampler. A sample is the time of one call of `work`, including the destruction of its result:
/// the average over as many calls as the resolution of the clock requires.
template <class Work>
[[nodiscard]] Sampler repeated(Work work) {
  constexpr double long_enough = 200e-6;
  const auto shared = std::make_shared<Work>(std::move(work));
  const auto time_calls = [shared](std::size_t calls) {
    return time_of([&] {
      for (std::size_t i = 0; i < calls; ++i) keep((*shared)());
    });
  };
  std::size_t calls = 1;
  while (time_calls(calls) < long_enough) calls *= 2;
  return [time_calls, calls] { return time_calls(calls) / static_cast<double>(calls); };
}

}  // namespace resourced::bench
