// Messages on a Unix stream socket, see local_frame.hpp.
#include "proto/local_frame.hpp"

#include <cerrno>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::proto {

namespace {

constexpr std::string_view frame_magic("\x12\x00\xee\xff", 4);
constexpr unsigned char long_part = 0xFF;
/// Maximum capacity of the buffer of an idle connection, which should not keep the memory of a large frame.
constexpr std::size_t max_idle_capacity = 4096;

std::size_t encoded_size(std::string_view part) { return (part.size() < long_part ? 1 : 5) + part.size(); }

void append_part(std::string& out, std::string_view part) {
  if (part.size() < long_part) {
    out.push_back(static_cast<char>(part.size()));
  } else {
    out.push_back(static_cast<char>(long_part));
    append_u32(out, static_cast<std::uint32_t>(part.size()));
  }
  out.append(part);
}

}  // namespace

void LocalFrameDecoder::fail(const std::string& what) {
  failure_ = "local frame: " + what;
  std::string().swap(buffer_);
  consumed_ = 0;
  throw Error(EPROTO, failure_);
}

void LocalFrameDecoder::feed(std::string_view bytes) {
  if (!failure_.empty()) {
    return;
  }
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  buffer_.append(bytes);
}

std::optional<Parts> LocalFrameDecoder::next() {
  if (!failure_.empty()) {
    throw Error(EPROTO, failure_);
  }
  if (consumed_ == buffer_.size() && buffer_.capacity() > max_idle_capacity) {
    std::string().swap(buffer_);
    consumed_ = 0;
  }
  const auto rest = std::string_view(buffer_).substr(consumed_);
  if (!frame_magic.starts_with(rest.substr(0, frame_magic.size()))) {
    fail("wrong magic");
  }
  if (rest.size() < local_header_size) {
    return std::nullopt;
  }
  const std::size_t length = read_u32(rest, frame_magic.size());
  if (length < min_local_frame) {
    fail(fmt::format("length {} is too short for a message", length));
  }
  if (length > max_frame_) {
    fail(fmt::format("length {} is more than {}", length, max_frame_));
  }
  if (rest.size() - local_header_size < length) {
    return std::nullopt;
  }
  auto parts = split(rest.substr(local_header_size, length));
  consumed_ += local_header_size + length;
  return parts;
}

Parts LocalFrameDecoder::split(std::string_view body) {
  Parts parts;
  while (!body.empty()) {
    if (parts.size() == max_parts) {
      fail(fmt::format("more than {} parts", max_parts));
    }
    std::size_t size = static_cast<unsigned char>(body.front());
    body.remove_prefix(1);
    if (size == long_part) {
      if (body.size() < 4) {
        fail(fmt::format("length of part {} is cut off", parts.size()));
      }
      size = read_u32(body, 0);
      body.remove_prefix(4);
    }
    if (size > body.size()) {
      fail(fmt::format("part {} of {} bytes where {} are left", parts.size(), size, body.size()));
    }
    parts.push_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return parts;
}

void append_local_frame(std::string& out, const Message& message) {
  const auto proto = encode_proto(message);
  const auto parts = to_parts(message, proto);
  std::size_t length = 0;
  for (const auto part : parts) {
    length += encoded_size(part);
  }
  if (length > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(EMSGSIZE, fmt::format("{}: message of {} bytes", message.topic, length));
  }
  out.reserve(out.size() + local_header_size + length);
  out.append(frame_magic);
  append_u32(out, static_cast<std::uint32_t>(length));
  for (const auto part : parts) {
    append_part(out, part);
  }
}

std::string encode_local_frame(const Message& message) {
  std::string frame;
  append_local_frame(frame, message);
  return frame;
}

}  // namespace resourced::proto
