// Requests to etcd as its JSON gateway takes them (POST /v3/...), and its answers. Keys and values are
// base64, and 64-bit numbers are strings. Answers come from the network: whatever does not fit is an Error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/cluster/requests.hpp"

namespace resourced::daemon::log::etcd {

namespace requests = ::resourced::cluster;

struct EtcdRequest {
  std::string target;
  std::string body;
};

/// Encodes a request. `prefix` is put before each key.
[[nodiscard]] EtcdRequest encode_request(const requests::Request& request, std::string_view prefix);

/// Decodes the outcome in an answer with HTTP status 200. Throws Error EPROTO that says what is wrong with
/// it.
[[nodiscard]] requests::Outcome decode_answer(const requests::Request& request, std::string_view prefix,
                                              std::string_view body);

/// Decodes the outcome in one line of the answer to a Watch; nothing if it tells none. Throws as
/// decode_answer().
[[nodiscard]] std::optional<requests::Outcome> decode_watched(const requests::Watch& watch,
                                                              std::string_view line);

/// An answer with another HTTP status than 200.
struct EtcdFailure {
  enum class Kind {
    refused,
    lease_has_ended,
    /// There is no majority, or the member is overloaded: the request may have been carried out.
    unknown,
    /// The token is missing or not valid any more.
    token,
    /// A login was refused, as the authentication of etcd is not enabled.
    auth_is_off,
  };
  Kind kind = Kind::unknown;
  std::string why;
};
[[nodiscard]] EtcdFailure decode_failure(unsigned status, std::string_view body);

/// Encodes a request for the state of one member, which answers it without the others, and without a token.
[[nodiscard]] EtcdRequest encode_status();
/// Finds the id of the etcd that has given an answer with HTTP status 200, or a line of a watch; empty if
/// there is none in it.
[[nodiscard]] std::string_view cluster_in(std::string_view answer);

[[nodiscard]] EtcdRequest encode_login(std::string_view user, std::string_view password);
/// Decodes the token in the answer to a login. Throws Error EPROTO for any other answer.
[[nodiscard]] std::string decode_login(std::string_view body);

}  // namespace resourced::daemon::log::etcd
