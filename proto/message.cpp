#include "proto/message.hpp"

#include <cassert>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"

namespace resourced::proto {

using json_text::JsonFault;

namespace {

constexpr unsigned char proto_magic = 0x8E;
constexpr std::string_view cancel_suffix = "-cancel";

[[noreturn]] void reject(const std::string& what) { throw Error(EPROTO, "message: " + what); }

unsigned char byte_at(std::string_view bytes, std::size_t offset) {
  return static_cast<unsigned char>(bytes[offset]);
}

MessageType parse_type(unsigned char byte) {
  switch (byte) {
    case 1:
    case 2:
    case 4:
    case 8:
      return static_cast<MessageType>(byte);
    default:
      reject(fmt::format("unknown type {:#04x}", byte));
  }
}

/// Reads the fields of the PROTO part; other parts are not touched.
Message parse_proto(std::string_view part) {
  if (part.size() != proto_size) {
    reject(fmt::format("PROTO part of {} bytes instead of {}", part.size(), proto_size));
  }
  if (byte_at(part, 0) != proto_magic) {
    reject(fmt::format("PROTO magic is {:#04x} instead of {:#04x}", byte_at(part, 0), proto_magic));
  }
  if (byte_at(part, 1) != proto_version) {
    reject(fmt::format("PROTO version is {} instead of {}: the client speaks another protocol",
                       byte_at(part, 1), proto_version));
  }
  Message message;
  message.type = parse_type(byte_at(part, 2));
  message.flags = byte_at(part, 3);
  message.userid = read_u32(part, 4);
  message.rolemask = read_u32(part, 8);
  message.aux = read_u32(part, 12);
  message.matchtag = read_u32(part, 16);
  return message;
}

/// Checks the flags by the type (RFC 3): a control message is PROTO alone, and every other type has a topic.
void check_flags(const Message& message) {
  constexpr unsigned parts = flag::topic | flag::payload | flag::route;
  if (message.type == MessageType::control) {
    if ((message.flags & parts) != 0) {
      reject(fmt::format("flags {:#04x} in a control message", message.flags));
    }
  } else if (!message.has(flag::topic)) {
    reject("no topic");
  }
}

std::string parse_topic(std::string_view part) {
  if (!part.empty() && part.back() == '\0') {
    part.remove_suffix(1);
  }
  if (part.empty()) {
    reject("empty topic");
  }
  if (part.size() > max_topic_size) {
    reject(fmt::format("topic of {} bytes, more than {}", part.size(), max_topic_size));
  }
  for (const char c : part) {
    if (c <= ' ' || c > '~') {
      reject(fmt::format("byte {:#04x} in the topic", static_cast<unsigned char>(c)));
    }
  }
  return std::string(part);
}

/// Returns the parts one by one, and refuses to read past the end.
class PartReader {
 public:
  explicit PartReader(std::span<const std::string_view> parts) : parts_(parts) {}

  std::string_view take(std::string_view what) {
    if (parts_.empty()) {
      reject(fmt::format("no part left for the {}", what));
    }
    const auto part = parts_.front();
    parts_ = parts_.subspan(1);
    return part;
  }

  [[nodiscard]] std::size_t left() const noexcept { return parts_.size(); }

 private:
  std::span<const std::string_view> parts_;
};

std::vector<std::string> take_routes(PartReader& reader) {
  std::vector<std::string> routes;
  for (auto part = reader.take("delimiter"); !part.empty(); part = reader.take("delimiter")) {
    if (routes.size() == max_routes) {
      reject(fmt::format("more than {} routes", max_routes));
    }
    if (part.size() > max_route_size) {
      reject(fmt::format("route of {} bytes, more than {}", part.size(), max_route_size));
    }
    routes.emplace_back(part);
  }
  return routes;
}

void set_payload(Message& message, Payload payload) {
  if (payload) {
    message.payload = std::move(payload);
    message.flags |= flag::payload;
  }
}

Message answer(const Message& request) {
  Message response;
  response.type = MessageType::response;
  response.flags = flag::topic | flag::route;
  response.userid = request.userid;
  response.rolemask = request.rolemask;
  response.matchtag = request.matchtag;
  response.routes = request.routes;
  response.topic = request.topic;
  return response;
}

}  // namespace

std::string_view Message::text() const noexcept {
  if (!payload) {
    return {};
  }
  std::string_view text = *payload;
  if (!text.empty() && text.back() == '\0') {
    text.remove_suffix(1);
  }
  return text;
}

void Message::push_route(std::string route) {
  routes.insert(routes.begin(), std::move(route));
  flags |= flag::route;
}

std::optional<std::string> Message::pop_route() {
  if (routes.empty()) {
    return std::nullopt;
  }
  std::optional<std::string> route = std::move(routes.front());
  routes.erase(routes.begin());
  return route;
}

ProtoPart encode_proto(const Message& message) {
  ProtoPart proto;
  proto.reserve(proto_size);
  proto.push_back(static_cast<char>(proto_magic));
  proto.push_back(static_cast<char>(proto_version));
  proto.push_back(static_cast<char>(message.type));
  proto.push_back(static_cast<char>(message.flags));
  append_u32(proto, message.userid);
  append_u32(proto, message.rolemask);
  append_u32(proto, message.aux);
  append_u32(proto, message.matchtag);
  return proto;
}

Parts to_parts(const Message& message, const ProtoPart& proto) {
  Parts parts;
  parts.reserve(message.routes.size() + 4);
  if (message.has(flag::route)) {
    parts.insert(parts.end(), message.routes.begin(), message.routes.end());
    parts.emplace_back();
  }
  if (message.has(flag::topic)) {
    parts.emplace_back(message.topic);
  }
  if (message.has(flag::payload)) {
    parts.emplace_back(message.payload ? std::string_view(*message.payload) : std::string_view());
  }
  parts.emplace_back(proto);
  return parts;
}

Message from_parts(std::span<const std::string_view> parts) {
  if (parts.empty()) {
    reject("no parts");
  }
  Message message = parse_proto(parts.back());
  check_flags(message);
  PartReader reader(parts.first(parts.size() - 1));
  if (message.has(flag::route)) {
    message.routes = take_routes(reader);
  }
  if (message.has(flag::topic)) {
    message.topic = parse_topic(reader.take("topic"));
  }
  if (message.has(flag::payload)) {
    message.payload = std::make_shared<const std::string>(reader.take("payload"));
  }
  if (reader.left() != 0) {
    reject(fmt::format("{} parts that its flags {:#04x} do not announce", reader.left(), message.flags));
  }
  return message;
}

TopicName split_topic(std::string_view topic) noexcept {
  const auto period = topic.find('.');
  if (period == std::string_view::npos) {
    return {topic, {}};
  }
  return {topic.substr(0, period), topic.substr(period + 1)};
}

std::optional<std::string_view> cancelled_topic(std::string_view topic) noexcept {
  const auto method = split_topic(topic).method;
  if (method.size() <= cancel_suffix.size() || !method.ends_with(cancel_suffix)) {
    return std::nullopt;
  }
  topic.remove_suffix(cancel_suffix.size());
  return topic;
}

bool is_disconnect(std::string_view topic) noexcept {
  const auto name = split_topic(topic);
  return !name.service.empty() && name.method == "disconnect";
}

Payload make_payload(std::string text) {
  text.push_back('\0');
  return std::make_shared<const std::string>(std::move(text));
}

Payload make_json_payload(const nlohmann::json& object) {
  assert(object.is_object());
  return make_payload(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Message make_request(std::string topic, std::uint32_t matchtag, Payload payload, std::uint8_t flags) {
  Message request;
  request.type = MessageType::request;
  request.flags = static_cast<std::uint8_t>(flags | flag::topic | flag::route);
  request.aux = nodeid_any;
  request.matchtag = matchtag;
  request.topic = std::move(topic);
  set_payload(request, std::move(payload));
  return request;
}

Message make_cancel(const Message& request) {
  return make_request(request.topic + "-cancel", 0,
                      make_payload(fmt::format(R"({{"matchtag":{}}})", request.matchtag)), flag::noresponse);
}

Message make_response(const Message& request, Payload payload) {
  Message response = answer(request);
  response.flags |= static_cast<std::uint8_t>(request.flags & flag::streaming);
  set_payload(response, std::move(payload));
  return response;
}

Message make_error(const Message& request, int errnum, std::string_view text) {
  assert(errnum > 0);
  Message response = answer(request);
  response.aux = static_cast<std::uint32_t>(errnum);
  if (!text.empty()) {
    set_payload(response, make_payload(std::string(text)));
  }
  return response;
}

Message make_error(const Message& request, const Error& error) {
  return make_error(request, error.errnum(), error.what());
}

bool is_final(const Message& response) noexcept {
  return response.errnum() != 0 || !response.has(flag::streaming);
}

Error response_error(const Message& response) {
  const auto errnum = response.errnum();
  if (errnum == 0 || errnum > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    return {EPROTO,
            json_text::printable_line(fmt::format("{}: response with errnum {}", response.topic, errnum))};
  }
  if (response.text().empty()) {
    return {static_cast<int>(errnum), std::generic_category().message(static_cast<int>(errnum))};
  }
  return {static_cast<int>(errnum), json_text::printable_line(response.text())};
}

nlohmann::json parse_object(const Message& message, std::size_t most_values) {
  nlohmann::json object;
  read_object(message, most_values,
              [&](json_text::JsonReader& reader) { return reader.value(object) && object.is_object(); });
  return object;
}

void read_object(const Message& message, std::size_t most_values,
                 const std::function<bool(json_text::JsonReader&)>& read) {
  if (!message.has(flag::payload)) {
    throw Error(EPROTO, fmt::format("{}: no payload", message.topic));
  }
  const std::size_t values =
      message.type == MessageType::request ? most_values : std::numeric_limits<std::size_t>::max();
  json_text::JsonReader reader(message.text(), max_json_depth, json_text::JsonManners::lenient, values);
  if (read(reader) && reader.at_end()) return;
  const JsonFault fault = std::move(reader).fault();
  if (fault.kind == JsonFault::Kind::depth)
    throw Error(EPROTO, fmt::format("{}: payload nests deeper than {}", message.topic, max_json_depth));
  if (fault.kind == JsonFault::Kind::values)
    throw Error(EPROTO, fmt::format("{}: payload has more than {} values", message.topic, most_values));
  throw Error(EPROTO, fmt::format("{}: payload is not a JSON object", message.topic));
}

nlohmann::json parse_optional_object(const Message& message, std::size_t most_values) {
  return message.has(flag::payload) ? parse_object(message, most_values) : nlohmann::json::object();
}

std::uint32_t parse_cancel(const Message& cancel) {
  const auto object = parse_object(cancel);
  const auto found = object.find("matchtag");
  if (found == object.end()) {
    throw Error(EPROTO, fmt::format("{}: no matchtag", cancel.topic));
  }
  if (!found->is_number_unsigned() ||
      found->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(EPROTO, fmt::format("{}: matchtag is not an integer of 32 bits", cancel.topic));
  }
  return found->get<std::uint32_t>();
}

}  // namespace resourced::proto
