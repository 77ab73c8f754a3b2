// What the fuzz targets share: one input is one text. An Error is an answer like any other; anything else
// that is thrown, and a CHECK that does not hold, ends the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"

#define FUZZ_CHECK(condition)                                  \
  do {                                                         \
    if (!(condition)) {                                        \
      std::fprintf(stderr, "does not hold: %s\n", #condition); \
      std::abort();                                            \
    }                                                          \
  } while (false)

/// Calls use(text) and takes an Error for an answer.
template <class Use>
int fuzz_text(const std::uint8_t* data, std::size_t size, Use use) {
  try {
    use(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const resourced::Error&) {
  }
  return 0;
}
