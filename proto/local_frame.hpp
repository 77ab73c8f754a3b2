// Messages on a Unix stream socket ("local connector"). A frame is
//   12 00 ee ff | length of what follows, 4 bytes big endian | parts
// and a part one length byte (0-254) and its data, or 0xFF, a 4-byte big-endian length, and its data. These
// are the bytes that are sent in practice; RFC 3 has the magic in the other order. The welcome byte and the
// routes are left to the transport.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "proto/message.hpp"

namespace resourced::proto {

inline constexpr std::size_t local_header_size = 8;
/// Minimum length that a frame can announce: a message of a PROTO part only.
inline constexpr std::size_t min_local_frame = 1 + proto_size;
/// Maximum length in bytes that a frame may announce, unless the decoder gets another limit.
inline constexpr std::size_t default_max_local_frame = std::size_t{64} << 20U;

/// Splits a stream of bytes into frames as they arrive. It checks the framing only: from_parts() rejects
/// parts that are no message, and the stream continues with the next frame.
class LocalFrameDecoder {
 public:
  explicit LocalFrameDecoder(std::size_t max_frame = default_max_local_frame) noexcept
      : max_frame_(max_frame) {}

  /// Adds bytes that were received, split in any way. Call next() until it returns nothing before the next
  /// feed: then the buffer has at most one frame and one feed.
  void feed(std::string_view bytes);

  /// Returns the parts of the next frame, valid until the next call; nothing if the frame is not complete.
  /// Error EPROTO if the stream is malformed. The start of the next frame is then unknown, so each later call
  /// throws it again: the connection has to be closed.
  [[nodiscard]] std::optional<Parts> next();

  /// Number of buffered bytes that belong to no complete frame: at the end of a stream, 0 unless it was cut.
  [[nodiscard]] std::size_t pending() const noexcept { return buffer_.size() - consumed_; }

 private:
  [[noreturn]] void fail(const std::string& what);
  [[nodiscard]] Parts split(std::string_view body);

  std::size_t max_frame_;
  std::string buffer_;
  std::size_t consumed_ = 0;
  /// The error of the stream; empty until one occurs.
  std::string failure_;
};

/// Appends the frame of a message. Error EMSGSIZE, with nothing appended, if its length exceeds 32 bits.
void append_local_frame(std::string& out, const Message& message);
[[nodiscard]] std::string encode_local_frame(const Message& message);

}  // namespace resourced::proto
