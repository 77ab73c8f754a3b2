// One response to a request (RFC 6), as a handler of client/connection.hpp sees it: a payload or an error,
// sent by the daemon or found on this side (nobody there, connection lost, no answer in time).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::client {

class Response {
 public:
  /// Takes a message of the daemon.
  explicit Response(proto::Message message);
  /// A failure that this side found.
  Response(std::string topic, Error failure);

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  /// No further response to the request follows.
  [[nodiscard]] bool last() const noexcept { return last_; }
  /// The failure was found on this side; the daemon said nothing.
  [[nodiscard]] bool local() const noexcept { return local_; }
  [[nodiscard]] const std::string& topic() const noexcept { return message_.topic; }

  /// The failure. Its text is one line of at most max_printable_line bytes without control characters (see
  /// core/json/printable.hpp). Requires !ok().
  [[nodiscard]] const Error& error() const;

  /// The payload as it was sent, one JSON object; empty if there is none. Requires ok().
  [[nodiscard]] std::string_view text() const noexcept;
  /// The payload, or an empty object if there is none. Throws the failure if there is one, and Error EPROTO
  /// if the payload is not a JSON object.
  [[nodiscard]] nlohmann::json payload() const;

 private:
  proto::Message message_;
  std::optional<Error> error_;
  bool last_ = true;
  bool local_ = false;
};

}  // namespace resourced::client
