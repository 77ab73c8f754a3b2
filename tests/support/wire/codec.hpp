// Messages of RFC 3 and frames of the local connector, encoded and decoded directly from the specification.
// This code shares nothing with the code under test, and can produce invalid messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::wire {

inline constexpr std::uint8_t flag_topic = 0x01;
inline constexpr std::uint8_t flag_payload = 0x02;
inline constexpr std::uint8_t flag_noresponse = 0x04;
inline constexpr std::uint8_t flag_route = 0x08;
inline constexpr std::uint8_t flag_streaming = 0x40;
inline constexpr std::uint8_t type_request = 1;
inline constexpr std::uint8_t type_response = 2;
inline constexpr std::uint32_t nodeid_any = 0xFFFFFFFF;
/// Offsets of two fields in PROTO.
inline constexpr std::size_t errnum_at = 12;
inline constexpr std::size_t matchtag_at = 16;

/// The parts of a message: routes, an empty delimiter, topic, optional payload, PROTO.
using Parts = std::vector<std::string>;

/// A number as four bytes, the most significant one first.
[[nodiscard]] std::string big_endian(std::uint32_t value);
/// Decodes the four bytes at `place`. Throws std::out_of_range.
[[nodiscard]] std::uint32_t number_at(std::string_view bytes, std::size_t place);

/// The 20 bytes of PROTO, with an unknown user.
[[nodiscard]] std::string proto(std::uint8_t type, std::uint8_t flags, std::uint32_t aux,
                                std::uint32_t matchtag);
/// JSON as a payload: its text and a NUL.
[[nodiscard]] std::string payload_of(const nlohmann::json& value);
/// A request to any rank. Its flags follow from its parts, plus `flags`. The caller adds the NUL of the
/// payload.
[[nodiscard]] Parts request_parts(std::string_view topic, std::uint32_t matchtag,
                                  const std::optional<std::string>& payload = std::nullopt,
                                  std::uint8_t flags = 0, const Parts& routes = {});
/// A response to a request, with its routes, topic, credentials and matchtag. Flags and payload are given as
/// for request_parts().
[[nodiscard]] Parts response_parts(const Parts& request, std::uint32_t errnum,
                                   const std::optional<std::string>& payload, std::uint8_t flags = 0);

/// A decoded response.
struct RawResponse {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t userid = 0;
  std::uint32_t rolemask = 0;
  std::uint32_t errnum = 0;
  std::uint32_t matchtag = 0;
  std::string topic;
  /// The payload as received, including a terminating NUL.
  std::string payload;

  [[nodiscard]] bool streaming() const { return (flags & flag_streaming) != 0; }
  /// The payload of a success. Throws if this is an error, or if the payload is not an object with a NUL.
  [[nodiscard]] nlohmann::json json() const;
  /// The text of an error without its NUL.
  [[nodiscard]] std::string text() const;
};

/// Decodes a response without routes. Throws std::runtime_error if it is malformed.
[[nodiscard]] RawResponse take_apart(const Parts& parts);
/// The errnum and the matchtag of a response with any routes.
[[nodiscard]] std::uint32_t errnum_of(const Parts& response);
[[nodiscard]] std::uint32_t matchtag_of(const Parts& response);

/// The size in bytes of magic and length, which precede the parts in a frame of the local connector.
inline constexpr std::size_t frame_header_size = 8;
/// A well-formed frame with these parts, valid or not.
[[nodiscard]] std::string local_frame(const Parts& parts);
/// The length of the parts from the header of a frame. Throws std::runtime_error if it is not a header.
[[nodiscard]] std::size_t frame_size(std::string_view header);
/// Splits the bytes after the header of a frame into parts. Throws std::runtime_error.
[[nodiscard]] Parts split_frame(std::string_view body);

}  // namespace resourced::wire
