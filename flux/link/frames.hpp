// The encodings that the keeper reads and writes: frames of a Flux instance's channel, which are those of the
// local connector (proto/local_frame.hpp) without bounds on routes, as their number follows the depth of the
// instance's tree; and messages of the link to the service process, each a mark and a frame.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/message.hpp"

namespace resourced::flux::link {

/// The fields of a frame that the keeper needs. Views into the frame.
struct Head {
  proto::MessageType type = proto::MessageType::request;
  std::uint8_t flags = 0;
  std::uint32_t userid = proto::userid_unknown;
  std::uint32_t rolemask = proto::role::none;
  /// By type: nodeid of a request, errnum of a response.
  std::uint32_t aux = 0;
  std::uint32_t matchtag = 0;
  /// The routes, the last pushed one first.
  std::vector<std::string_view> routes;
  std::string_view topic;
  std::string_view payload;

  /// The first pushed route: the program that has sent a request. Empty if there is none.
  [[nodiscard]] std::string_view origin() const noexcept {
    return routes.empty() ? std::string_view() : routes.back();
  }
  [[nodiscard]] bool has(std::uint8_t bit) const noexcept { return (flags & bit) != 0; }
};

/// Reads the fields of a frame. Throws Error EPROTO if it is not a message.
[[nodiscard]] Head read_head(std::string_view frame);
/// Returns a message that owns its fields: all of the head except the payload.
[[nodiscard]] proto::Message without_payload(const Head& head);

/// The matchtag of a service's request to the broker: the generation of the service (Relay::generation()) is
/// in the upper byte, which distinguishes answers to a dead service from those to its successor. The keeper's
/// own requests have generation 0.
inline constexpr unsigned generation_shift = 24;
[[nodiscard]] constexpr std::uint32_t matchtag_of(std::uint8_t generation, std::uint32_t number) noexcept {
  return std::uint32_t{generation} << generation_shift | (number & ((1U << generation_shift) - 1));
}
[[nodiscard]] constexpr std::uint8_t generation_of(std::uint32_t matchtag) noexcept {
  return static_cast<std::uint8_t>(matchtag >> generation_shift);
}

/// Severities of RFC 5424.
enum class Severity : std::uint8_t { critical = 2, error = 3, warning = 4, info = 6, debug = 7 };

/// Makes the request that adds a line to the broker's log (RFC 5424). `rank` is that of the broker, `process`
/// the id of the sender.
[[nodiscard]] proto::Message make_log_line(Severity severity, std::uint32_t rank, int process,
                                           std::chrono::system_clock::time_point time, std::string_view text);

/// Maximum length of a frame in bytes: values of a KVS and responses about a large cluster fit.
inline constexpr std::size_t max_frame = std::size_t{1} << 30U;

/// Empties a buffer, and frees its memory after large messages.
void clear_buffer(std::string& buffer);
/// Makes the C library return the memory of long buffers to the system when they are freed. By default it
/// keeps up to 64 MiB of a process that frees buffers of half that size.
void give_back_long_buffers();

/// Maximum length of a request, which any user of the instance may send: the configuration of an instance
/// fits.
inline constexpr std::size_t max_request = std::size_t{64} << 20U;

/// Splits the bytes of the channel into frames.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// Returns the next frame with its header, valid until the next call; nothing if it is not complete. Throws
  /// Error EMSGSIZE once for a frame that is longer than max_frame, which is skipped. Throws Error EPROTO if
  /// the stream is malformed, after which no frame can be read.
  [[nodiscard]] std::optional<std::string_view> next();
  /// Whether the last frame is a request that is longer than max_request. It is returned without its payload,
  /// which is not stored.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }

 private:
  std::string buffer_;
  std::size_t consumed_ = 0;
  /// Skips bytes of the present frame.
  void skip(std::size_t size);
  /// Skips the payload of a long request, once its topic was received. Throws Error EMSGSIZE, and skips the
  /// whole frame, if its routes and topic are too long.
  void cut(std::string_view frame, std::size_t length);

  bool is_broken_ = false;
  /// Number of bytes still to be skipped.
  std::size_t skipped_ = 0;
  /// The header, routes and topic of a request that is being cut, until its last part was received.
  std::string cut_;
  bool is_cutting_ = false;
  bool is_cut_ = false;
};

/// A message of the link between keeper and service:
///   length of the mark, 4 bytes big endian | mark | length of the frame, 4 bytes big endian | frame
/// In a message from the service, the mark is the position of the stream after this response, and the keeper
/// stores it; a response with the flag `noresponse` is not relayed, and only its mark counts. In one to the
/// service it is the stored mark of the stream that the frame requests, empty if the
/// stream is new. A message without a frame reports the state of the service: its mark is "running", or
/// "failed ERRNUM".
struct LinkMessage {
  std::string_view mark;
  std::string_view frame;
};

void append_link_message(std::string& out, const LinkMessage& message);

/// Splits the bytes of the link into messages. An incomplete message is dropped with the reader when the
/// service ends.
class LinkReader {
 public:
  void feed(std::string_view bytes);
  /// Returns the next message, valid until the next call; nothing if it is not complete. Throws Error EPROTO
  /// if it is longer than a frame with its header, after which no message can be read.
  [[nodiscard]] std::optional<LinkMessage> next();

 private:
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace resourced::flux::link
