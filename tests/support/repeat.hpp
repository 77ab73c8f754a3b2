// Repeats a text, for inputs of a given length or depth.
#pragma once

#include <cstddef>
#include <string>

namespace resourced::test {

inline std::string repeat(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace resourced::test
