// Shared by the fuzz targets: each input is one text. An Error is a valid result; any other exception and a
// CHECK that fails end the run.
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

/// Calls use(text) and catches Error.
template <class Use>
int fuzz_text(const std::uint8_t* data, std::size_t size, Use use) {
  try {
    use(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const resourced::Error&) {
  }
  return 0;
}
