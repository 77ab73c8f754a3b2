// A message of the bus, independent of the transport: its fields, its topic, the key of a request, and its
// parts (RFC 3); requests and responses (RFC 6): how they are made, when a stream is over, and how their JSON
// payload is read. The keys of each payload are in topics/, pending requests in daemon/streams/registry.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"

namespace resourced::json_text {
class JsonReader;
}

namespace resourced::proto {

enum class MessageType : std::uint8_t { request = 1, response = 2, event = 4, control = 8 };

namespace flag {
inline constexpr std::uint8_t topic = 0x01;
inline constexpr std::uint8_t payload = 0x02;
inline constexpr std::uint8_t noresponse = 0x04;
inline constexpr std::uint8_t route = 0x08;
inline constexpr std::uint8_t upstream = 0x10;
inline constexpr std::uint8_t is_private = 0x20;
inline constexpr std::uint8_t streaming = 0x40;
inline constexpr std::uint8_t user1 = 0x80;
}  // namespace flag

/// The version in PROTO (RFC 3) of all messages.
inline constexpr std::uint8_t proto_version = 1;

inline constexpr std::uint32_t userid_unknown = 0xFFFFFFFFU;
inline constexpr std::uint32_t nodeid_any = 0xFFFFFFFFU;

/// Bits of the rolemask (RFC 12).
namespace role {
inline constexpr std::uint32_t none = 0;
inline constexpr std::uint32_t owner = 1;
inline constexpr std::uint32_t user = 2;
inline constexpr std::uint32_t local = 4;
inline constexpr std::uint32_t admin = 8;
}  // namespace role

/// Bytes that many messages can share: encoded once, sent many times.
using Payload = std::shared_ptr<const std::string>;

struct Message {
  MessageType type = MessageType::request;
  /// Bits of flag::. Only they determine whether the message has a topic, a payload and routes.
  std::uint8_t flags = 0;
  std::uint32_t userid = userid_unknown;
  std::uint32_t rolemask = role::none;
  /// By type: nodeid of a request, errnum of a response, sequence of an event, type-specific in a control
  /// message.
  std::uint32_t aux = 0;
  /// By type: matchtag of a request or response, status of a control message.
  std::uint32_t matchtag = 0;
  /// Routes, the outermost hop first, without the empty delimiter.
  std::vector<std::string> routes;
  std::string topic;
  /// The payload as sent, including the terminating NUL of JSON or of an error text.
  Payload payload;

  [[nodiscard]] bool has(std::uint8_t bit) const noexcept { return (flags & bit) != 0; }
  [[nodiscard]] std::uint32_t nodeid() const noexcept { return aux; }
  [[nodiscard]] std::uint32_t errnum() const noexcept { return aux; }
  /// Returns the payload without one terminating NUL; empty if there is none.
  [[nodiscard]] std::string_view text() const noexcept;

  /// Adds a hop, as a ROUTER socket does on receipt, and sets flag-route.
  void push_route(std::string route);
  /// Removes and returns the hop that push_route() added last; nothing if no route is left.
  std::optional<std::string> pop_route();
};

/// The parts of a message in order: routes, delimiter, topic, payload, PROTO. They are views into the message
/// and into `proto`, which the caller keeps.
using Parts = std::vector<std::string_view>;
inline constexpr std::size_t proto_size = 20;
using ProtoPart = std::string;

/// Maximum numbers that from_parts() accepts. An identity of ZeroMQ has up to 255 bytes.
inline constexpr std::size_t max_routes = 16;
inline constexpr std::size_t max_route_size = 255;
inline constexpr std::size_t max_topic_size = 255;
/// Maximum number of parts: routes, delimiter, topic, payload, PROTO.
inline constexpr std::size_t max_parts = max_routes + 4;

[[nodiscard]] ProtoPart encode_proto(const Message& message);
[[nodiscard]] Parts to_parts(const Message& message, const ProtoPart& proto);

/// Makes a message of its parts. Throws Error EPROTO that says what does not parse. The parts may have any
/// content, and may be destroyed after the call. The topic is stored without a terminating NUL, the payload
/// as it was sent.
[[nodiscard]] Message from_parts(std::span<const std::string_view> parts);

// Topics of RPCs (RFC 3, RFC 6): SERVICE.METHOD, and the two that end requests.

struct TopicName {
  /// The service: the first word of the topic.
  std::string_view service;
  /// The method: the other words, with the periods between them; empty if there are none.
  std::string_view method;
};

/// Splits a topic at the first period, into views of `topic`.
[[nodiscard]] TopicName split_topic(std::string_view topic) noexcept;

/// Returns `resource.acquire` for `resource.acquire-cancel`; nothing if the topic is not a cancellation.
[[nodiscard]] std::optional<std::string_view> cancelled_topic(std::string_view topic) noexcept;

/// Whether the topic is `SERVICE.disconnect`.
[[nodiscard]] bool is_disconnect(std::string_view topic) noexcept;

// Clients and their requests (RFC 6) have names, by which a daemon finds the state of a pending request.

/// The name that a transport gives to one connection. It is never used again for another one.
enum class ClientId : std::uint64_t {};

/// Names a request: matchtags are unique per client only. 0 is a matchtag like any other: a client that needs
/// not tell responses apart may have one such request pending.
struct RequestKey {
  ClientId client{};
  std::uint32_t matchtag = 0;

  bool operator==(const RequestKey&) const = default;
  bool operator<(const RequestKey& other) const noexcept {
    return client != other.client ? client < other.client : matchtag < other.matchtag;
  }
};

// The functions below make and read requests and responses (RFC 6).

/// Makes a payload as it is sent, with a terminating NUL added to `text`.
[[nodiscard]] Payload make_payload(std::string text);
/// Makes a payload of a JSON object on one line, with a terminating NUL. Bytes that are not UTF-8 are sent as
/// replacement characters.
[[nodiscard]] Payload make_json_payload(const nlohmann::json& object);

/// Makes a request to any node, without credentials and with an empty route stack. `flags` adds
/// flag::noresponse or flag::streaming; this function sets those of the parts.
[[nodiscard]] Message make_request(std::string topic, std::uint32_t matchtag, Payload payload = nullptr,
                                   std::uint8_t flags = 0);

/// Makes the request that cancels `request`: SERVICE.METHOD-cancel with its matchtag, noresponse.
[[nodiscard]] Message make_cancel(const Message& request);

/// Makes a response for a success: topic, matchtag, routes and credentials of the request, errnum 0, and the
/// streaming flag if the request has it. Flux's clients drop a response whose rolemask shares no bit with
/// that of its handler (RFC 12). The caller checks whether the request expects a response at all
/// (noresponse).
[[nodiscard]] Message make_response(const Message& request, Payload payload = nullptr);

/// Makes a response for a failure, which also ends a stream. `errnum` is positive; with an empty text no
/// payload is sent.
[[nodiscard]] Message make_error(const Message& request, int errnum, std::string_view text = {});
[[nodiscard]] Message make_error(const Message& request, const Error& error);

/// Whether no further response to the same request may follow, so that its matchtag is free again (RFC 6).
[[nodiscard]] bool is_final(const Message& response) noexcept;

/// Returns the error that a response reports, with the text of its sender, passed through printable_line(),
/// or else that of the errno. EPROTO if the errnum is not a valid errno.
[[nodiscard]] Error response_error(const Message& response);

/// Maximum nesting of arrays and objects in a payload, the object itself included. An R of the deepest
/// nesting (rset::ResourceSet::max_depth) has its place in each.
inline constexpr std::size_t max_json_depth = 80;

/// Maximum number of values in the payload of a request unless its topic says otherwise, arrays and objects
/// included: they take time and memory out of proportion to their bytes. Responses are not bounded.
inline constexpr std::size_t max_request_values = 1024;

/// Reads the payload, one JSON object. Error EPROTO that names the topic: `resource.drain: no payload`,
/// `resource.drain: payload is not a JSON object`. A request may have at most `most_values` values.
[[nodiscard]] nlohmann::json parse_object(const Message& message,
                                          std::size_t most_values = max_request_values);
/// Does the same for a topic that takes no arguments: returns an empty object if there is no payload.
[[nodiscard]] nlohmann::json parse_optional_object(const Message& message,
                                                   std::size_t most_values = max_request_values);

/// Lets `read` take the parts of a payload. `read` returns false if the text is not a JSON object, which then
/// is the Error of parse_object(), and throws what it refuses.
void read_object(const Message& message, std::size_t most_values,
                 const std::function<bool(json_text::JsonReader&)>& read);

/// Returns the matchtag that a cancellation names. Error EPROTO unless the payload is an object with an
/// integer `matchtag` of 32 bits; other keys are ignored, as in any request.
[[nodiscard]] std::uint32_t parse_cancel(const Message& cancel);

// PROTO (RFC 3) and the Unix-socket framing have 32-bit big-endian integers.

inline void append_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<unsigned char>((value >> shift) & 0xFFU)));
  }
}

/// Reads the integer at `offset`; four bytes must be there.
[[nodiscard]] inline std::uint32_t read_u32(std::string_view bytes, std::size_t offset) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

}  // namespace resourced::proto
