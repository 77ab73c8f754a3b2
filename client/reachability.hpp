// Explains why an attempt to connect failed, as ZeroMQ reports little more than the failure.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace resourced::client {

/// The cause of a failed attempt to connect, as the transport reports it.
enum class ConnectFailure : std::uint8_t {
  unreachable,
  /// The daemon has not answered in time.
  timed_out,
  /// The other end closed the connection during the handshake. A CURVE server does that if the client does
  /// not have its public key, and an end with CURVE if the other one has none and it is the first to notice.
  ended,
  bad_handshake,
  /// One end requires CURVE and the other does not have it, and this end was the first to notice.
  other_mechanism,
  /// The daemon does not know the key, or has revoked it.
  key_refused,
  /// The daemon refuses this user over local:, which has no role.
  no_role,
  /// The daemon refuses this user over local:, which has too many connections.
  too_many,
};

/// Whether the next attempt would fail in the same way unless keys or roles are changed.
[[nodiscard]] bool is_final(ConnectFailure failure) noexcept;

/// Whether explain() takes more than a moment, as it looks up a name, or waits for a host.
[[nodiscard]] bool may_take_long(ConnectFailure failure, const std::string& uri) noexcept;

/// Returns the error `cannot reach the daemon at URI: WHY`, with an errno. For unreachable and ended a plain
/// socket tries all addresses of the host, for at most a fraction of a second, and its errors are preferred.
/// `key_file` is the file of the keys that were used, or empty.
[[nodiscard]] Error explain(ConnectFailure failure, const std::string& uri, const std::string& key_file);

}  // namespace resourced::client
