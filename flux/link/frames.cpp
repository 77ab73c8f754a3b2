#include "flux/link/frames.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>

#include "core/error.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"

namespace resourced::flux::link {
namespace {

constexpr std::string_view frame_magic("\x12\x00\xee\xff", 4);
constexpr unsigned char long_part = 0xFF;
constexpr std::size_t length_size = 4;
/// Size of the last part of a frame, with its length.
constexpr std::size_t proto_part_size = 1 + proto::proto_size;
constexpr std::size_t flags_at = 3;

/// Removes and returns the next part of `body`, which is not empty.
std::string_view take_part(std::string_view& body) {
  std::size_t header = 1;
  std::size_t size = static_cast<unsigned char>(body.front());
  if (size == long_part) {
    header += length_size;
    if (body.size() < header) throw Error(EPROTO, "frame: the length of a part is cut off");
    size = proto::read_u32(body, 1);
  }
  if (size > body.size() - header) {
    throw Error(EPROTO,
                fmt::format("frame: a part of {} bytes where {} are left", size, body.size() - header));
  }
  const std::string_view part = body.substr(header, size);
  body.remove_prefix(header + size);
  return part;
}

/// Whether a frame has routes and so is the request of a client: its first part is then the name of a broker
/// or module, and otherwise a topic, which has a dot. False if the part has not been received.
bool is_request(std::string_view body) {
  if (body.empty()) return false;
  const std::size_t size = static_cast<unsigned char>(body.front());
  if (size == long_part || body.size() <= size) return false;
  const std::string_view first = take_part(body);
  return !first.empty() && first.find('.') == std::string_view::npos;
}

/// Returns the size of the routes and the topic, with which the body of a request begins; nothing if they are
/// not complete.
std::optional<std::size_t> size_of_head(std::string_view body) {
  std::string_view rest = body;
  const auto has_part = [&rest] {
    if (rest.empty()) return false;
    const std::size_t size = static_cast<unsigned char>(rest.front());
    if (size != long_part) return rest.size() > size;
    return rest.size() > length_size && rest.size() - length_size - 1 >= proto::read_u32(rest, 1);
  };
  bool is_topic = false;
  while (has_part()) {
    const bool is_end = take_part(rest).empty();
    if (is_topic) return body.size() - rest.size();
    is_topic = is_end;
  }
  return std::nullopt;
}

/// Removes the bytes that were read from a buffer.
void forget(std::string& buffer, std::size_t& consumed) {
  buffer.erase(0, consumed);
  consumed = 0;
  if (buffer.empty()) clear_buffer(buffer);
}

}  // namespace

void clear_buffer(std::string& buffer) {
  constexpr std::size_t max_idle_capacity = 65536;
  buffer.clear();
  if (buffer.capacity() > max_idle_capacity) std::string().swap(buffer);
}

Head read_head(std::string_view frame) {
  if (frame.size() < proto::local_header_size) throw Error(EPROTO, "frame: the header is cut off");
  std::string_view body = frame.substr(proto::local_header_size);
  const std::size_t header_of_proto = 1;
  if (body.size() < header_of_proto + proto::proto_size) throw Error(EPROTO, "frame: no PROTO part");
  const std::string_view end = body.substr(body.size() - proto::proto_size);
  constexpr std::string_view begin_of_proto("\x8e\x01", 2);
  if (!end.starts_with(begin_of_proto)) throw Error(EPROTO, "frame: no PROTO part at its end");
  constexpr std::size_t type_at = 2;
  constexpr std::size_t userid_at = 4;
  constexpr std::size_t rolemask_at = 8;
  constexpr std::size_t aux_at = 12;
  constexpr std::size_t matchtag_at = 16;
  Head head;
  head.type = static_cast<proto::MessageType>(end[type_at]);
  head.flags = static_cast<std::uint8_t>(end[flags_at]);
  head.userid = proto::read_u32(end, userid_at);
  head.rolemask = proto::read_u32(end, rolemask_at);
  head.aux = proto::read_u32(end, aux_at);
  head.matchtag = proto::read_u32(end, matchtag_at);
  body.remove_suffix(proto::proto_size + header_of_proto);
  if (head.has(proto::flag::route)) {
    while (true) {
      if (body.empty()) throw Error(EPROTO, "frame: the routes have no end");
      const std::string_view route = take_part(body);
      if (route.empty()) break;
      head.routes.push_back(route);
    }
  }
  if (head.has(proto::flag::topic)) {
    if (body.empty()) throw Error(EPROTO, "frame: no topic part");
    head.topic = take_part(body);
    if (head.topic.ends_with('\0')) head.topic.remove_suffix(1);
  }
  if (head.has(proto::flag::payload)) {
    if (body.empty()) throw Error(EPROTO, "frame: no payload part");
    head.payload = take_part(body);
  }
  return head;
}

proto::Message without_payload(const Head& head) {
  proto::Message message;
  message.type = head.type;
  message.flags = head.flags & static_cast<std::uint8_t>(~proto::flag::payload);
  message.userid = head.userid;
  message.rolemask = head.rolemask;
  message.aux = head.aux;
  message.matchtag = head.matchtag;
  message.routes.assign(head.routes.begin(), head.routes.end());
  message.topic = head.topic;
  return message;
}

proto::Message make_log_line(Severity severity, std::uint32_t rank, int process,
                             std::chrono::system_clock::time_point time, std::string_view text) {
  using std::chrono::microseconds;
  constexpr int severities = 8;
  constexpr long second = 1'000'000;
  const auto micros = std::chrono::floor<microseconds>(time).time_since_epoch().count() % second;
  const std::string line = fmt::format(
      "<{}>1 {:%Y-%m-%dT%H:%M:%S}.{:06}Z {} resource {} - - {}", static_cast<int>(severity) * severities,
      fmt::gmtime(std::chrono::system_clock::to_time_t(time)), micros, rank, process, text);
  return proto::make_request("log.append", 0, std::make_shared<const std::string>(line),
                             proto::flag::noresponse);
}

void give_back_long_buffers() {
  constexpr int most_kept = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, most_kept);
  ::mallopt(M_TRIM_THRESHOLD, most_kept);
}

void FrameReader::feed(std::string_view bytes) {
  forget(buffer_, consumed_);
  const std::size_t skipped = std::min(skipped_, bytes.size());
  skipped_ -= skipped;
  bytes.remove_prefix(skipped);
  buffer_.append(bytes);
}

void FrameReader::skip(std::size_t size) {
  const std::size_t come = std::min(size, buffer_.size() - consumed_);
  consumed_ += come;
  skipped_ = size - come;
}

void FrameReader::cut(std::string_view frame, std::size_t length) {
  const std::string_view body = frame.substr(proto::local_header_size);
  const auto size = size_of_head(body);
  constexpr std::size_t longest_head = 65536;
  if (!size && body.size() < longest_head) return;
  if (!size || *size > longest_head) {
    skip(proto::local_header_size + length);
    throw Error(EMSGSIZE, fmt::format("frame: a request of {} bytes, more than {}", length, max_request));
  }
  cut_.assign(frame.substr(0, frame_magic.size()));
  proto::append_u32(cut_, static_cast<std::uint32_t>(*size + proto_part_size));
  cut_ += body.substr(0, *size);
  is_cutting_ = true;
  skip(proto::local_header_size + length - proto_part_size);
}

std::optional<std::string_view> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(consumed_);
  is_cut_ = false;
  if (is_cutting_) {
    if (skipped_ > 0 || rest.size() < proto_part_size) return std::nullopt;
    consumed_ += proto_part_size;
    is_cutting_ = false;
    is_cut_ = true;
    cut_ += rest.substr(0, proto_part_size);
    char& flags = cut_[cut_.size() - proto::proto_size + flags_at];
    flags = static_cast<char>(flags & ~proto::flag::payload);
    return cut_;
  }
  is_broken_ = is_broken_ || !frame_magic.starts_with(rest.substr(0, frame_magic.size()));
  if (is_broken_) throw Error(EPROTO, "frame: wrong magic");
  if (rest.size() < proto::local_header_size) return std::nullopt;
  const std::size_t length = proto::read_u32(rest, frame_magic.size());
  const std::size_t come = rest.size() - proto::local_header_size;
  if (length > max_frame) {
    skip(proto::local_header_size + length);
    throw Error(EMSGSIZE, fmt::format("frame: length {} is more than {}", length, max_frame));
  }
  if (length > max_request && is_request(rest.substr(proto::local_header_size))) {
    cut(rest, length);
    return is_cutting_ ? next() : std::nullopt;
  }
  if (come < length) return std::nullopt;
  consumed_ += proto::local_header_size + length;
  return rest.substr(0, proto::local_header_size + length);
}

void append_link_message(std::string& out, const LinkMessage& message) {
  for (const std::string_view text : {message.mark, message.frame}) {
    proto::append_u32(out, static_cast<std::uint32_t>(text.size()));
    out.append(text);
  }
}

void LinkReader::feed(std::string_view bytes) {
  forget(buffer_, consumed_);
  buffer_.append(bytes);
}

std::optional<LinkMessage> LinkReader::next() {
  std::string_view rest = std::string_view(buffer_).substr(consumed_);
  static constexpr std::size_t longest = max_frame + proto::local_header_size;
  const auto take = [&rest]() -> std::optional<std::string_view> {
    if (rest.size() < length_size) return std::nullopt;
    const std::size_t length = proto::read_u32(rest, 0);
    if (length > longest)
      throw Error(EPROTO, fmt::format("link: length {} is more than {}", length, longest));
    if (rest.size() - length_size < length) return std::nullopt;
    const std::string_view text = rest.substr(length_size, length);
    rest.remove_prefix(length_size + length);
    return text;
  };
  const auto mark = take();
  if (!mark) return std::nullopt;
  const auto frame = take();
  if (!frame) return std::nullopt;
  consumed_ = buffer_.size() - rest.size();
  return LinkMessage{*mark, *frame};
}

}  // namespace resourced::flux::link
