// How the keeper attaches to a service that runs already: it passes the descriptors of the link and of the
// welcome over a Unix socket, and is told in one line whether the service takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/file.hpp"

namespace resourced::flux::link {

/// What the keeper passes.
struct Attachment {
  /// The service's end of the link.
  os::Descriptor link;
  /// A file with the broker's welcome.
  os::Descriptor welcome;
  /// Relay::generation() of this service.
  std::uint8_t generation = 1;
  /// The module has not reported yet that it is running.
  bool is_first = true;
};

/// Passes the descriptors, which stay open here. Throws std::system_error.
void send_attachment(int socket, int link, int welcome, std::uint8_t generation, bool is_first);
/// Reads what a keeper passes; nothing if it has not come yet, on a socket that does not wait. Throws Error
/// EPROTO for anything else, ECONNRESET if the keeper has gone.
[[nodiscard]] std::optional<Attachment> receive_attachment(int socket);

/// The line by which a service takes an attachment. Any other line says why it does not.
inline constexpr std::string_view attached = "attached";

}  // namespace resourced::flux::link
