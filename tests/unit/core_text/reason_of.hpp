// The error texts of the parsers in core/text.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::test {

/// Parses this text, checks the errnum, and returns the text of the error, or "accepted".
template <class Parsed>
std::string reason_of(std::string_view text, int errnum = EINVAL) {
  try {
    (void)Parsed::parse(text);
  } catch (const Error& error) {
    CHECK(error.errnum() == errnum);
    return error.what();
  }
  return "accepted";
}

}  // namespace resourced::test
