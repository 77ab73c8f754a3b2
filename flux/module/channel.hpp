// The service's side of the link to the keeper, for a program that does one thing at a time: it takes
// requests of the broker's clients, sends requests to other modules, and may wait for their answers.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "flux/link/frames.hpp"
#include "proto/message.hpp"

namespace resourced::flux::module {

class Channel {
 public:
  /// `socket` and `generation` (Relay::generation()) come from the keeper. The channel owns the socket.
  /// `rank` is that of the broker, for lines of the log.
  Channel(int socket, std::uint8_t generation, std::uint32_t rank);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Waits for the next request or event; nothing when the keeper has ended.
  [[nodiscard]] std::optional<proto::Message> next();

  void respond(const proto::Message& request, proto::Payload payload = nullptr);
  void respond(const proto::Message& request, const nlohmann::json& object);
  void refuse(const proto::Message& request, const Error& error);

  struct Target {
    std::uint32_t nodeid = proto::nodeid_any;
    std::uint8_t flags = 0;
  };
  /// Any broker on the way to the root that has the service.
  [[nodiscard]] static Target nearest() { return {}; }
  /// The same, without this broker.
  [[nodiscard]] Target upstream() const { return {rank_, proto::flag::upstream}; }
  [[nodiscard]] static Target leader() { return {0, 0}; }

  /// Sends a request without a response.
  void tell(std::string topic, const nlohmann::json& payload, Target target);
  /// Sends a request and waits for the answer. Requests that come meanwhile are kept for next(). Throws Error
  /// with the errno and the text of a refusal; ECONNRESET when the keeper has ended.
  proto::Message call(std::string topic, const nlohmann::json& payload, Target target);

  /// Reports that the module is running, so that the broker continues.
  void running();
  /// Reports that the module cannot be loaded.
  void failed(int errnum);
  /// Adds a line of level err to the broker's log.
  void log_error(std::string_view text);

  /// Messages of each type since the last clear.
  struct Counts {
    std::uint64_t request = 0;
    std::uint64_t response = 0;
    std::uint64_t event = 0;
    std::uint64_t control = 0;
  };
  [[nodiscard]] const Counts& sent() const noexcept { return sent_; }
  [[nodiscard]] const Counts& received() const noexcept { return received_; }
  void clear_counts() noexcept { sent_ = received_ = {}; }

 private:
  void send(const proto::Message& message);
  void write(std::string_view bytes);
  /// Waits for the next message; nothing when the keeper has ended.
  std::optional<proto::Message> read();
  proto::Message request(std::string topic, const nlohmann::json& payload, Target target, std::uint8_t flags);

  int socket_;
  std::uint8_t generation_;
  std::uint32_t rank_;
  std::uint32_t last_matchtag_ = 0;
  link::LinkReader reader_;
  std::deque<proto::Message> waiting_;
  Counts sent_;
  Counts received_;
};

}  // namespace resourced::flux::module
