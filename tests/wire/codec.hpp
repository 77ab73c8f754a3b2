// Messages of RFC 3 and frames of the local connector as tests write and read them, by hand from the
// specification. They share no code with what is tested, and can make what no well-behaved client would send.
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
/// Places of two fields in PROTO.
inline constexpr std::size_t errnum_at = 12;
inline constexpr std::size_t matchtag_at = 16;

/// The parts of a message: routes, an empty delimiter, topic, payload where there is one, PROTO.
using Parts = std::vector<std::string>;

/// Four bytes, the most significant first.
[[nodiscard]] std::string big_endian(std::uint32_t value);
/// The number that these four bytes are. Throws std::out_of_range.
[[nodiscard]] std::uint32_t number_at(std::string_view bytes, std::size_t place);

/// The 20 bytes of PROTO, the user unknown.
[[nodiscard]] std::string proto(std::uint8_t type, std::uint8_t flags, std::uint32_t aux,
                                std::uint32_t matchtag);
/// JSON as a payload: its text and a NUL.
[[nodiscard]] std::string payload_of(const nlohmann::json& value);
/// A request to any rank. Its flags follow from its parts; `flags` are added. The payload's NUL is the
/// caller's.
[[nodiscard]] Parts request_parts(std::string_view topic, std::uint32_t matchtag,
                                  const std::optional<std::string>& payload = std::nullopt,
                                  std::uint8_t flags = 0, const Parts& routes = {});
/// A response to a request, with its routes, topic, credentials and matchtag. As above.
[[nodiscard]] Parts response_parts(const Parts& request, std::uint32_t errnum,
                                   const std::optional<std::string>& payload, std::uint8_t flags = 0);

/// A response, taken apart.
struct RawResponse {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t userid = 0;
  std::uint32_t rolemask = 0;
  std::uint32_t errnum = 0;
  std::uint32_t matchtag = 0;
  std::string topic;
  /// As it came; a terminating NUL included.
  std::string payload;

  [[nodiscard]] bool streaming() const { return (flags & flag_streaming) != 0; }
  /// The payload of a success; throws if this is an error or not an object with its NUL.
  [[nodiscard]] nlohmann::json json() const;
  /// The text of an error without its NUL.
  [[nodiscard]] std::string text() const;
};

/// A response without routes. Throws std::runtime_error if it is not well made.
[[nodiscard]] RawResponse take_apart(const Parts& parts);
/// The errnum and the matchtag of a response, whatever its routes.
[[nodiscard]] std::uint32_t errnum_of(const Parts& response);
[[nodiscard]] std::uint32_t matchtag_of(const Parts& response);

/// Size in bytes of what precedes the parts in a frame of the local connector: magic and length.
inline constexpr std::size_t frame_header_size = 8;
/// The frame of a message that has these parts, well made whatever they are.
[[nodiscard]] std::string local_frame(const Parts& parts);
/// The length of the parts that follow this header. Throws std::runtime_error if it is none.
[[nodiscard]] std::size_t frame_size(std::string_view header);
/// The parts in a frame behind its header. Throws std::runtime_error.
[[nodiscard]] Parts split_frame(std::string_view body);

}  // namespace resourced::wire
