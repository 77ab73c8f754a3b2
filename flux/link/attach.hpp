// The protocol by which the keeper attaches to a service that is already running: it passes the descriptors
// of the link and of the welcome over a Unix socket, and gets one line that says whether the service accepts
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/file.hpp"

namespace resourced::flux::link {

/// The data that the keeper passes.
struct Attachment {
  /// The service's end of the link.
  os::Descriptor link;
  /// A file with the broker's welcome.
  os::Descriptor welcome;
  /// Relay::generation() of this service.
  std::uint8_t generation = 1;
  /// Whether the module has not reported yet that it is running.
  bool is_first = true;
};

/// Passes the descriptors, which stay open here. Throws std::system_error.
void send_attachment(int socket, int link, int welcome, std::uint8_t generation, bool is_first);
/// Reads what a keeper passes; returns nothing if it has not arrived yet, on a non-blocking socket. Throws
/// Error EPROTO for anything else, ECONNRESET if the keeper is gone.
[[nodiscard]] std::optional<Attachment> receive_attachment(int socket);

/// The line by which a service accepts an attachment. Any other line is the reason of a refusal.
inline constexpr std::string_view attached = "attached";

}  // namespace resourced::flux::link
