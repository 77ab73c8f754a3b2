#include "wire/codec.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace resourced::wire {
namespace {

constexpr std::size_t proto_size = 20;
constexpr char proto_magic = '\x8E';
constexpr char version = 1;
constexpr std::string_view frame_magic("\x12\x00\xEE\xFF", 4);
constexpr std::uint8_t long_part = 0xFF;

std::string encoded(std::string_view part) {
  if (part.size() < long_part) return static_cast<char>(part.size()) + std::string(part);
  return static_cast<char>(long_part) + big_endian(static_cast<std::uint32_t>(part.size())) +
         std::string(part);
}

std::string without_nul(const RawResponse& response) {
  if (response.payload.empty() || response.payload.back() != '\0')
    throw std::runtime_error(response.topic + ": a payload without NUL");
  return response.payload.substr(0, response.payload.size() - 1);
}

}  // namespace

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>((value >> shift) & 0xFF));
  return bytes;
}

std::uint32_t number_at(std::string_view bytes, std::size_t place) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(place + i));
  return value;
}

std::string proto(std::uint8_t type, std::uint8_t flags, std::uint32_t aux, std::uint32_t matchtag) {
  constexpr std::uint32_t userid_unknown = 0xFFFFFFFF;
  constexpr std::uint32_t no_roles = 0;
  std::string bytes{proto_magic, version, static_cast<char>(type), static_cast<char>(flags)};
  for (const std::uint32_t field : {userid_unknown, no_roles, aux, matchtag}) bytes += big_endian(field);
  return bytes;
}

std::string payload_of(const nlohmann::json& value) { return value.dump() + '\0'; }

Parts request_parts(std::string_view topic, std::uint32_t matchtag, const std::optional<std::string>& payload,
                    std::uint8_t flags, const Parts& routes) {
  flags |= flag_route | flag_topic;
  if (payload) flags |= flag_payload;
  Parts parts = routes;
  parts.insert(parts.end(), {"", std::string(topic)});
  if (payload) parts.push_back(*payload);
  parts.push_back(proto(type_request, flags, nodeid_any, matchtag));
  return parts;
}

Parts response_parts(const Parts& request, std::uint32_t errnum, const std::optional<std::string>& payload,
                     std::uint8_t flags) {
  flags |= flag_route | flag_topic;
  if (payload) flags |= flag_payload;
  const auto delimiter = std::find(request.begin(), request.end(), std::string());
  Parts parts(request.begin(), delimiter + 2);
  if (payload) parts.push_back(*payload);
  std::string proto = request.back();
  proto[2] = static_cast<char>(type_response);
  proto[3] = static_cast<char>(flags);
  parts.push_back(proto.replace(errnum_at, 4, big_endian(errnum)));
  return parts;
}

nlohmann::json RawResponse::json() const {
  if (errnum != 0) throw std::runtime_error(fmt::format("{}: error {}: {}", topic, errnum, text()));
  return nlohmann::json::parse(without_nul(*this));
}

std::string RawResponse::text() const { return payload.empty() ? std::string() : without_nul(*this); }

RawResponse take_apart(const Parts& parts) {
  const auto malformed = [](const char* what) {
    return std::runtime_error(fmt::format("a response {}", what));
  };
  if (parts.empty() || parts.back().size() != proto_size) throw malformed("without PROTO");
  const std::string& proto = parts.back();
  if (proto[0] != proto_magic || proto[1] != version) throw malformed("of another protocol");
  RawResponse response;
  response.type = static_cast<std::uint8_t>(proto[2]);
  response.flags = static_cast<std::uint8_t>(proto[3]);
  response.userid = number_at(proto, 4);
  response.rolemask = number_at(proto, 8);
  response.errnum = number_at(proto, errnum_at);
  response.matchtag = number_at(proto, matchtag_at);
  if (response.type != type_response) throw malformed("is none");
  constexpr std::uint8_t needed = flag_route | flag_topic;
  if ((response.flags & needed) != needed) throw malformed("without route or topic");
  const bool has_payload = (response.flags & flag_payload) != 0;
  if (parts.size() != (has_payload ? 4U : 3U)) throw malformed("with parts that its flags do not name");
  if (!parts[0].empty()) throw malformed("without delimiter");
  response.topic = parts[1];
  if (has_payload) response.payload = parts[2];
  return response;
}

std::uint32_t errnum_of(const Parts& response) { return number_at(response.back(), errnum_at); }
std::uint32_t matchtag_of(const Parts& response) { return number_at(response.back(), matchtag_at); }

std::string local_frame(const Parts& parts) {
  std::string body;
  for (const std::string& part : parts) body += encoded(part);
  return std::string(frame_magic) + big_endian(static_cast<std::uint32_t>(body.size())) + body;
}

std::size_t frame_size(std::string_view header) {
  if (!header.starts_with(frame_magic)) throw std::runtime_error("a frame without its magic");
  return number_at(header, frame_magic.size());
}

Parts split_frame(std::string_view body) {
  Parts parts;
  while (!body.empty()) {
    std::size_t size = static_cast<std::uint8_t>(body[0]);
    body.remove_prefix(1);
    if (size == long_part) {
      size = number_at(body, 0);
      body.remove_prefix(4);
    }
    if (size > body.size()) throw std::runtime_error("a part that is longer than its frame");
    parts.emplace_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return parts;
}

}  // namespace resourced::wire
