// Responses as handlers see them, see response.hpp.
#include "client/response.hpp"

#include <cassert>
#include <utility>

#include <nlohmann/json.hpp>

#include "proto/rpc.hpp"

namespace resourced::client {

Response::Response(proto::Message message) : message_(std::move(message)), last_(proto::is_final(message_)) {
  if (message_.errnum() != 0) error_ = proto::response_error(message_);
}

Response::Response(std::string topic, Error failure) : error_(std::move(failure)), local_(true) {
  message_.type = proto::MessageType::response;
  message_.topic = std::move(topic);
}

const Error& Response::error() const {
  assert(error_.has_value());
  return *error_;
}

std::string_view Response::text() const noexcept { return message_.text(); }

nlohmann::json Response::payload() const {
  if (error_) throw Error(*error_);
  return proto::parse_optional_object(message_);
}

}  // namespace resourced::client
