// What the parsers of this room say of a text that they refuse.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::test {

/// The text of the error with which Parsed::parse refuses a text, or "accepted". Its number is checked.
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
