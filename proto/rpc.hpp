// Requests and responses of RFC 6 as messages: how they are made, when a stream is over, and how their JSON
// payload is read. Which keys a payload has is in topics/; which requests wait for a response, in
// daemon/streams/registry.hpp.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::proto {

/// A payload as it is sent, with a terminating NUL added to `text`.
[[nodiscard]] Payload make_payload(std::string text);
/// A JSON object on one line, with a terminating NUL. Bytes that are not UTF-8 are sent as replacement
/// characters.
[[nodiscard]] Payload make_json_payload(const nlohmann::json& object);

/// A request to any node, without credentials and with an empty route stack. `flags` adds flag::noresponse or
/// flag::streaming; those of the parts are set here.
[[nodiscard]] Message make_request(std::string topic, std::uint32_t matchtag, Payload payload = nullptr,
                                   std::uint8_t flags = 0);

/// The request that cancels `request`: SERVICE.METHOD-cancel with its matchtag, noresponse.
[[nodiscard]] Message make_cancel(const Message& request);

/// A success: topic, matchtag, routes and credentials of the request, errnum 0, and the streaming flag if the
/// request has it. Flux's clients drop a response whose rolemask shares no bit with that of its handler (RFC
/// 12). The caller checks whether the request takes a response at all (noresponse).
[[nodiscard]] Message make_response(const Message& request, Payload payload = nullptr);

/// A failure, which also ends a stream. `errnum` is positive; an empty text sends no payload.
[[nodiscard]] Message make_error(const Message& request, int errnum, std::string_view text = {});
[[nodiscard]] Message make_error(const Message& request, const Error& error);

/// True if no further response to the same request may follow, so that its matchtag is free again (RFC 6).
[[nodiscard]] bool is_final(const Message& response) noexcept;

/// The error that a response reports. Its text is that of the sender, passed through printable_line(), or
/// else that of the errno. EPROTO if the errnum is not a valid errno.
[[nodiscard]] Error response_error(const Message& response);

/// How deep arrays and objects of a payload may nest, the object itself included.
inline constexpr std::size_t max_json_depth = 64;

/// How many values the payload of a request may have unless its topic says otherwise, arrays and objects
/// included: they take time and memory out of proportion to their bytes. Responses are of any length.
inline constexpr std::size_t max_request_values = 1024;

/// The payload, one JSON object. Error EPROTO that names the topic: `resource.drain: no payload`,
/// `resource.drain: payload is not a JSON object`. A request may have at most `most_values` values.
[[nodiscard]] nlohmann::json parse_object(const Message& message,
                                          std::size_t most_values = max_request_values);
/// The same, for a topic that takes no arguments: an empty object if there is no payload.
[[nodiscard]] nlohmann::json parse_optional_object(const Message& message,
                                                   std::size_t most_values = max_request_values);

/// The matchtag that a cancellation names. Error EPROTO unless the payload is an object with an integer
/// `matchtag` of 32 bits; other keys are ignored, as in any request.
[[nodiscard]] std::uint32_t parse_cancel(const Message& cancel);

// The matchtags of a client's requests (RFC 6): unique among those that a response may still come for. The
// caller knows which request of its own has which matchtag.

enum class MatchtagState : std::uint8_t {
  /// Not in use: a response with this tag is a stray one.
  unused,
  /// The caller waits for the response.
  pending,
  /// The caller no longer waits, but the last response has not come yet.
  cancelled,
};

class MatchtagPool {
 public:
  static constexpr std::size_t default_limit = 65536;

  /// `limit`: how many tags may be in use at a time. `largest`: tags are 1 to this, in turn; no less than the
  /// limit.
  explicit MatchtagPool(std::size_t limit = default_limit,
                        std::uint32_t largest = std::numeric_limits<std::uint32_t>::max()) noexcept
      : limit_(limit), largest_(largest) {
    assert(limit <= largest);
  }

  /// The next tag in turn that is not in use, never 0. Error EAGAIN if the limit is reached.
  std::uint32_t allocate();

  /// The caller no longer waits. The tag stays in use until the last response. False if it is not pending.
  bool cancel(std::uint32_t tag) noexcept;

  /// Records a response, and frees its tag if it is the last one. Returns the earlier state of the tag: only
  /// a response to a pending tag is delivered.
  MatchtagState receive(const Message& response) noexcept;

  /// Frees a tag whose request was never sent.
  void release(std::uint32_t tag) noexcept { tags_.erase(tag); }

  /// Frees all tags: with their connection gone no response can come.
  void clear() noexcept { tags_.clear(); }

  [[nodiscard]] MatchtagState state(std::uint32_t tag) const noexcept;
  /// How many tags are in use, the cancelled ones included.
  [[nodiscard]] std::size_t size() const noexcept { return tags_.size(); }

 private:
  std::size_t limit_;
  std::uint32_t largest_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, MatchtagState> tags_;
};

}  // namespace resourced::proto
