// What the keeper reads and writes: frames of a Flux instance's channel, which are those of the local
// connector (proto/local_frame.hpp) without bounds on routes, as their number follows the depth of the
// instance's tree; and the link to the service process, on which each frame has a mark before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/message.hpp"

namespace resourced::flux::link {

/// The fields of a frame that the keeper goes by. Views into the frame.
struct Head {
  proto::MessageType type = proto::MessageType::request;
  std::uint8_t flags = 0;
  std::uint32_t userid = proto::userid_unknown;
  std::uint32_t rolemask = proto::role::none;
  /// Request: nodeid. Response: errnum.
  std::uint32_t aux = 0;
  std::uint32_t matchtag = 0;
  /// The one that was pushed last stands first.
  std::vector<std::string_view> routes;
  std::string_view topic;
  std::string_view payload;

  /// The route that was pushed first: the program that has sent a request. Empty if there is none.
  [[nodiscard]] std::string_view origin() const noexcept {
    return routes.empty() ? std::string_view() : routes.back();
  }
  [[nodiscard]] bool has(std::uint8_t bit) const noexcept { return (flags & bit) != 0; }
};

/// Error EPROTO if a frame is no message.
[[nodiscard]] Head read_head(std::string_view frame);
/// A message of its own with all fields but the payload.
[[nodiscard]] proto::Message without_payload(const Head& head);

/// The most that a frame may announce, in bytes: values of a KVS and responses about a large cluster.
inline constexpr std::size_t max_frame = std::size_t{1} << 30U;

/// Takes bytes of the channel apart into whole frames.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// The next frame with its header, valid until the next call; nothing if it is not complete. Error EPROTO
  /// if the stream is malformed; there is no going on then.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  std::string buffer_;
  std::size_t consumed_ = 0;
};

/// A message of the link between keeper and service:
///   length of the mark, 4 bytes big endian | mark | length of the frame, 4 bytes big endian | frame
/// From the service the mark says how far the stream has come that the frame is a response of, and the keeper
/// keeps it; to the service it is the mark of the stream that the frame asks for, empty if the stream is new.
/// A message without a frame tells the keeper how the service is: its mark is "running", or "failed ERRNUM".
struct LinkMessage {
  std::string_view mark;
  std::string_view frame;
};

void append_link_message(std::string& out, const LinkMessage& message);

/// Takes bytes of the link apart. What is not complete when the service ends is dropped with the reader.
class LinkReader {
 public:
  void feed(std::string_view bytes);
  /// As FrameReader::next().
  [[nodiscard]] std::optional<LinkMessage> next();

 private:
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace resourced::flux::link
