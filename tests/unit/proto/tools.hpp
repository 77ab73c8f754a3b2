// Shared by the tests of the wire format: bytes from hex, messages to compare, and the recorded frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::proto::test {

/// A NUL, the byte that ends a payload.
inline const std::string nul(1, '\0');

/// Bytes from hexadecimal digits; blanks between them are ignored.
std::string from_hex(std::string_view hex);

/// All fields of a message on one line, for comparison and output.
std::string describe(const Message& message);

/// Calls from_parts() with a list of parts.
Message parse(const std::vector<std::string>& parts);

/// The parts of a message, copied.
std::vector<std::string> parts_of(const Message& message);

/// The errno of the Error that a call throws; 0 if it throws none.
template <typename Call>
int errnum_of(Call&& call) {
  try {
    static_cast<void>(call());
    return 0;
  } catch (const Error& error) {
    return error.errnum();
  }
}

/// The text of the Error that a call throws; empty if it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    static_cast<void>(call());
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// A recorded frame of a Flux command line, and its known fields.
struct Recorded {
  std::string command;
  std::string bytes;
  std::string topic;
  /// The payload's JSON text; empty if there is none.
  std::string payload;
  std::uint8_t flags = 0;
  std::uint32_t nodeid = 0;
  std::uint32_t matchtag = 0;
};

/// The frames of tests/vectors/wire.json.
std::vector<Recorded> recorded_frames();

}  // namespace resourced::proto::test
