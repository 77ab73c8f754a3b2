// The bytes of ZMTP 3.0 (ZeroMQ RFC 23) with the NULL mechanism, for a RawSocket: a peer that says in its
// handshake what libzmq would not let it say, or stops halfway.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/raw_socket.hpp"

namespace resourced::wire {

using ZmtpProperties = std::vector<std::pair<std::string, std::string>>;

/// The first 64 bytes.
[[nodiscard]] std::string zmtp_greeting();
/// The command READY. A name or a value has fewer than 256 bytes, and so have all together.
[[nodiscard]] std::string zmtp_ready(const ZmtpProperties& properties);
/// Greeting and READY of a DEALER: all that a client says before its first message.
[[nodiscard]] std::string zmtp_hello();
/// The last frame of a message, of fewer than 256 bytes.
[[nodiscard]] std::string zmtp_frame(std::string_view body);

/// Waits for the greeting and READY of the other end, which is all of its part of the handshake.
void await_zmtp_hello(const RawSocket& socket);
/// The whole handshake.
void shake_hands(const RawSocket& socket, const ZmtpProperties& properties);

}  // namespace resourced::wire
