#include "daemon/transport/zap.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <zmq.hpp>

#include "core/error.hpp"
#include "core/text/z85.hpp"
#include "daemon/transport/zmq_peers.hpp"
#include "os/loop.hpp"
#include "proto/zmq_socket.hpp"

namespace resourced::daemon::transport {

using proto::Multipart;
using proto::Reading;
using proto::send_now;

namespace {

namespace asio = boost::asio;

constexpr const char* endpoint = "inproc://zeromq.zap.01";
constexpr std::string_view version = "1.0";
constexpr std::size_t key_bytes = 32;
// Positions of the parts in a request.
constexpr std::size_t at_route = 0, at_delimiter = 1, at_version = 2, at_id = 3, at_domain = 4,
                      at_address = 5, at_mechanism = 7, at_key = 8, parts_of_curve = 9;
constexpr int requests_per_turn = 128;

std::string to_z85(std::string_view bytes) {
  std::array<char, text::z85_key_size + 1> text{};
  zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return text.data();
}

}  // namespace

ZapAnswer answer_zap(const std::vector<std::string_view>& request, const ZapAllow& allow) {
  if (request.size() <= at_id || !request[at_delimiter].empty()) {
    return {{}, "a malformed ZAP request"};
  }
  const auto answer = [&](const char* status, const char* text, std::string user, std::string refusal) {
    return ZapAnswer{{std::string(request[at_route]), "", std::string(version), std::string(request[at_id]),
                      status, text, std::move(user), ""},
                     std::move(refusal)};
  };
  if (request[at_version] != version || request.size() != parts_of_curve ||
      request[at_domain] != zap_domain || request[at_mechanism] != "CURVE" ||
      request[at_key].size() != key_bytes) {
    return answer("500", "not understood", {}, "a ZAP request that is not for CURVE");
  }
  std::string key = to_z85(request[at_key]);
  if (!allow(key)) {
    std::string refusal = fmt::format("unknown key {} from {}", key, plain_address(request[at_address]));
    return answer("400", "unknown key", {}, std::move(refusal));
  }
  return answer("200", "OK", std::move(key), {});
}

class ZapHandler::Impl {
 public:
  Impl(asio::io_context& loop, zmq::context_t& context, ZapAllow allow,
       std::function<void(const std::string&)> refused)
      : allow_(std::move(allow)),
        on_refused_(std::move(refused)),
        socket_(context, zmq::socket_type::router),
        watch_(loop, socket_.get(zmq::sockopt::fd), [this] { work(); }) {
    socket_.set(zmq::sockopt::linger, 0);
    try {
      socket_.bind(endpoint);
    } catch (const zmq::error_t& error) {
      throw Error(error.num(), fmt::format("cannot listen on {}: {}", endpoint, error.what()));
    }
    watch_.look_again();
  }

  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  // Reads until nothing is left, as the descriptor is edge-triggered, or looks again after a full turn.
  void work() {
    for (int i = 0; i < requests_per_turn; ++i) {
      const Reading reading = receive_now(socket_, received_, parts_of_curve + 1);
      if (reading == Reading::nothing) return;
      if (reading == Reading::part_of_message) continue;
      const ZapAnswer answer = answer_zap(views_of(received_, 0), allow_);
      send(answer.parts);
      if (answer.refusal.empty()) continue;
      ++refused_;
      on_refused_(answer.refusal);
    }
    watch_.look_again();
  }

  // Sends a reply. A connection that has ended meanwhile does not get it.
  void send(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) send_now(socket_, parts[i], i + 1 < parts.size());
  }

  ZapAllow allow_;
  std::function<void(const std::string&)> on_refused_;
  zmq::socket_t socket_;
  os::Watch watch_;
  Multipart received_;
  std::uint64_t refused_ = 0;
};

ZapHandler::ZapHandler(asio::io_context& loop, zmq::context_t& context, ZapAllow allow,
                       std::function<void(const std::string&)> refused)
    : impl_(std::make_unique<Impl>(loop, context, std::move(allow), std::move(refused))) {}
ZapHandler::~ZapHandler() = default;

std::uint64_t ZapHandler::refused() const noexcept { return impl_->refused(); }

}  // namespace resourced::daemon::transport
