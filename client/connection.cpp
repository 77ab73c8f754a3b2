// The public functions of a connection, see connection.hpp. Their implementation is in connection_impl.cpp.
#include "client/connection.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/connection_impl.hpp"
#include "client/keys.hpp"
#include "client/requests.hpp"
#include "core/error.hpp"
#include "proto/message.hpp"
#include "proto/uri.hpp"

namespace resourced::client {

Response::Response(std::string topic, Payload payload, bool last)
    : topic_(std::move(topic)), payload_(std::move(payload)), last_(last) {}

Response::Response(std::string topic, Error failure, bool local)
    : topic_(std::move(topic)), error_(std::move(failure)), local_(local) {}

const Error& Response::error() const {
  assert(error_.has_value());
  return *error_;
}

std::string_view Response::text() const noexcept {
  proto::Message message;
  message.payload = payload_;
  return message.text();
}

nlohmann::json Response::payload() const {
  if (error_) throw Error(*error_);
  proto::Message message;
  message.type = proto::MessageType::response;
  message.flags = payload_ ? proto::flag::payload : 0;
  message.topic = topic_;
  message.payload = payload_;
  return proto::parse_optional_object(message);
}

namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string default_uri() {
  const auto exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  // A client may connect to a Unix socket if it may write to its file.
  const auto may_connect = [](const std::string& path) { return access(path.c_str(), W_OK) == 0; };
  return proto::client_uri(environment, exists, may_connect);
}

std::string checked_uri(std::string uri) {
  if (uri.empty()) uri = default_uri();
  std::string places;
  for (const std::string& place : proto::split_uris(uri)) {
    if (!places.empty()) places += ',';
    places += proto::parse_endpoint(place, proto::EndpointUse::connect).uri();
  }
  return places;
}

/// Returns the keys for an address, if any apply, and sets `file` to their file.
std::optional<proto::KeyFile> keys_for(const std::string& uri, std::string& file) {
  const std::vector<std::string> places = proto::split_uris(uri);
  const auto is_tcp = [](const std::string& place) {
    return proto::parse_endpoint(place, proto::EndpointUse::connect).scheme == proto::Scheme::tcp;
  };
  if (std::ranges::none_of(places, is_tcp)) return std::nullopt;
  if (file.empty()) file = environment("RESOURCED_KEY").value_or("");
  if (file.empty()) return std::nullopt;
  return load_client_keys(file);
}

/// Reads a payload; null if there is none.
nlohmann::json from_text(std::string_view topic, std::string_view payload) {
  if (payload.empty()) return nullptr;
  try {
    return proto::parse_object(
        proto::make_request(std::string(topic), 0, proto::make_payload(std::string(payload)), 0),
        std::numeric_limits<std::size_t>::max());
  } catch (const Error& error) {
    throw Error(EINVAL, error.what());
  }
}

}  // namespace

proto::Payload to_payload(std::string_view topic, const nlohmann::json& payload) {
  if (payload.is_null()) return nullptr;
  if (!payload.is_object())
    throw Error(EINVAL, fmt::format("{}: the payload of a request must be an object", topic));
  try {
    return proto::make_payload(payload.dump());
  } catch (const nlohmann::json::type_error&) {
    // A replacement would make two different strings, such as ids, the same.
    throw Error(EINVAL, fmt::format("{}: a string of the payload is not UTF-8", topic));
  }
}

Connection::Connection(std::string uri, ConnectionOptions options) {
  uri = checked_uri(std::move(uri));
  auto keys = keys_for(uri, options.key_file);
  impl_ = std::make_shared<Impl>(std::move(uri), options, std::move(keys));
}

namespace {

/// Keeps what this process has inherited by fork: its destruction would use the descriptors of the parent,
/// and wait for the thread of libzmq, which only the parent has.
void keep(std::shared_ptr<const void> inherited) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(inherited));
}

}  // namespace

Connection::~Connection() {
  impl_->close();
  if (impl_->is_inherited()) keep(std::move(impl_));
}

const std::string& Connection::uri() const noexcept { return impl_->uri(); }
bool Connection::connected() const noexcept { return impl_->connected(); }
void Connection::refuse_in_child(std::string_view what) const { impl_->refuse_in_child(what); }
bool Connection::has_places() const noexcept { return impl_->has_places(); }

// A handler may destroy this object: functions that run handlers keep the Impl until they return.

void Connection::connect() {
  const auto impl = impl_;
  impl->connect();
}

bool Connection::follows(Epoch epoch, const std::string& cluster) { return impl_->follows({epoch, cluster}); }

std::string Connection::call_text(std::string_view topic, std::string_view payload,
                                  std::optional<Milliseconds> timeout) {
  return call(topic, from_text(topic, payload), timeout.value_or(impl_->options().call_timeout)).dump();
}

nlohmann::json Connection::call(std::string_view topic) { return call(topic, nullptr); }

nlohmann::json Connection::call(std::string_view topic, const nlohmann::json& payload) {
  return call(topic, payload, impl_->options().call_timeout);
}

nlohmann::json Connection::call(std::string_view topic, const nlohmann::json& payload, Milliseconds timeout) {
  // The handler below must not be called after this function ends, also by an exception of another handler.
  struct Forget {
    Impl& impl;
    RequestId id = 0;
    ~Forget() { impl.forget(id); }
  };
  const auto impl = impl_;
  impl->refuse_inside_handler("call()");
  std::optional<Response> response;
  SendOptions options;
  options.timeout = timeout;
  const Forget forget{*impl, send(
                                 topic, payload, [&](const Response& r) { response = r; }, options)};
  while (!response) impl->wait(Milliseconds(-1));
  return response->payload();
}

Connection::RequestId Connection::send(std::string_view topic, const nlohmann::json& payload, Handler handler,
                                       SendOptions options) {
  auto request =
      proto::make_request(std::string(topic), 0, to_payload(topic, payload),
                          options.streaming ? proto::flag::streaming : static_cast<std::uint8_t>(0));
  return impl_->send(std::move(request), std::move(handler), options);
}

Connection::RequestId Connection::send(std::string_view topic, Handler handler, SendOptions options) {
  return send(topic, nullptr, std::move(handler), options);
}

Connection::RequestId Connection::send_text(std::string_view topic, std::string_view payload, Handler handler,
                                            SendOptions options) {
  return send(topic, from_text(topic, payload), std::move(handler), options);
}

void Connection::cancel(RequestId id) { impl_->cancel(id); }
void Connection::forget(RequestId id) { impl_->forget(id); }

void Connection::notify_text(std::string_view topic, std::string_view payload) {
  notify(topic, from_text(topic, payload));
}

void Connection::notify(std::string_view topic, const nlohmann::json& payload) {
  impl_->notify(
      proto::make_request(std::string(topic), 0, to_payload(topic, payload), proto::flag::noresponse));
}

Connection::TimerId Connection::after(Milliseconds delay, std::function<void()> f) {
  return impl_->after(delay, std::move(f));
}
void Connection::cancel_timer(TimerId id) { impl_->cancel_timer(id); }

int Connection::fd() const noexcept { return impl_->fd(); }
void Connection::process() {
  const auto impl = impl_;
  impl->process();
}
void Connection::wait(Milliseconds longest) {
  const auto impl = impl_;
  impl->wait(longest);
}
bool Connection::run_for(Milliseconds time) {
  const auto impl = impl_;
  return impl->run_until(Clock::now() + bounded(time));
}
void Connection::run() {
  const auto impl = impl_;
  impl->run_until(std::nullopt);
}
void Connection::stop() noexcept { impl_->stop(); }
void Connection::close() { impl_->close(); }

}  // namespace resourced::client
