#include "wire/fake_bus.hpp"

#include <system_error>
#include <thread>

#include "wire/raw_socket.hpp"

namespace resourced::wire {
namespace {

/// The text as a payload with its NUL; nullopt if it is empty.
std::optional<std::string> payload_of_text(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(text) + '\0';
}

bool can_connect(const std::string& uri) {
  try {
    const RawSocket probe(uri);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

std::string Frames::payload() const {
  constexpr std::size_t parts_with_payload = 5;
  if (parts.size() != parts_with_payload) return {};
  return {parts[3].data(), parts[3].size() - 1};
}

void FakeBus::open() {
  router_.emplace(ZMQ_ROUTER, context_);
  constexpr int linger_ms = 1000;
  router_->set(ZMQ_LINGER, linger_ms);
  constexpr int unlimited = 0;
  router_->set(ZMQ_SNDHWM, unlimited);
  router_->bind(uri_);
}

void FakeBus::close() {
  if (!router_) return;
  router_.reset();
  // libzmq closes the listening socket asynchronously in its own thread.
  for (const Deadline deadline; uri_.starts_with("ipc://") && can_connect(uri_);) {
    if (deadline.passed()) throw Timeout("the bus does not close");
    std::this_thread::yield();
  }
}

Frames FakeBus::receive() {
  std::optional<Parts> parts = router_->receive();
  if (!parts) throw Timeout("no request came");
  return {std::move(*parts)};
}

bool FakeBus::quiet(std::chrono::milliseconds time) { return !router_->readable(Deadline(time)); }

void FakeBus::respond(const Frames& request, std::string_view payload, bool stream) {
  send_parts(response_parts(request.parts, 0, payload_of_text(payload), stream ? flag_streaming : 0));
}

void FakeBus::fail(const Frames& request, int errnum, std::string_view text) {
  send_parts(response_parts(request.parts, static_cast<std::uint32_t>(errnum), payload_of_text(text)));
}

}  // namespace resourced::wire
