// The error of a decoder for an invalid payload.
#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto::test {

/// Decodes this JSON text, and returns `ERRNUM TEXT` of the Error, or `accepted` if there is none.
template <class Parse>
std::string refusal(Parse parse, const char* payload) {
  try {
    (void)parse(nlohmann::json::parse(payload));
  } catch (const Error& error) {
    return fmt::format("{} {}", error.errnum(), error.what());
  }
  return "accepted";
}

}  // namespace resourced::proto::test
