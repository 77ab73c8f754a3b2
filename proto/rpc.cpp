// Requests and responses of RFC 6, see rpc.hpp.
#include "proto/rpc.hpp"

#include <cassert>
#include <cerrno>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"

namespace resourced::proto {

using json_text::JsonFault;

namespace {

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
  if (!message.has(flag::payload)) {
    throw Error(EPROTO, fmt::format("{}: no payload", message.topic));
  }
  const std::size_t values =
      message.type == MessageType::request ? most_values : std::numeric_limits<std::size_t>::max();
  auto read = read_json(message.text(), max_json_depth, json_text::JsonManners::lenient, values);
  if (auto* object = std::get_if<nlohmann::json>(&read); object != nullptr && object->is_object()) {
    return std::move(*object);
  }
  if (const auto* fault = std::get_if<JsonFault>(&read); fault && fault->kind == JsonFault::Kind::depth) {
    throw Error(EPROTO, fmt::format("{}: payload nests deeper than {}", message.topic, max_json_depth));
  } else if (fault && fault->kind == JsonFault::Kind::values) {
    throw Error(EPROTO, fmt::format("{}: payload has more than {} values", message.topic, most_values));
  }
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

std::uint32_t MatchtagPool::allocate() {
  if (tags_.size() >= limit_) {
    throw Error(EAGAIN, fmt::format("{} requests wait for a response already", tags_.size()));
  }
  std::uint32_t tag = last_;
  do {
    tag = tag == largest_ ? 1 : tag + 1;
  } while (tags_.contains(tag));
  tags_.emplace(tag, MatchtagState::pending);
  last_ = tag;
  return tag;
}

bool MatchtagPool::cancel(std::uint32_t tag) noexcept {
  const auto found = tags_.find(tag);
  if (found == tags_.end() || found->second != MatchtagState::pending) {
    return false;
  }
  found->second = MatchtagState::cancelled;
  return true;
}

MatchtagState MatchtagPool::receive(const Message& response) noexcept {
  const auto before = state(response.matchtag);
  if (is_final(response)) {
    tags_.erase(response.matchtag);
  }
  return before;
}

MatchtagState MatchtagPool::state(std::uint32_t tag) const noexcept {
  const auto found = tags_.find(tag);
  return found == tags_.end() ? MatchtagState::unused : found->second;
}

}  // namespace resourced::proto
