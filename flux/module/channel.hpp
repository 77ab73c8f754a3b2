// The service's side of the link to the keeper, for a program that does one thing after the other: requests
// of the broker's other clients come in, requests to other modules go out, and their answers may be waited
// for.
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
  /// `socket` is the one that the keeper gave, and `generation` what it said (Relay::generation()). The
  /// channel owns the socket. `rank` is that of the broker, for lines of the log.
  Channel(int socket, std::uint8_t generation, std::uint32_t rank);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// The next request or event. Waits for it; nothing when the keeper has gone.
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
  /// The same, but not this one.
  [[nodiscard]] Target upstream() const { return {rank_, proto::flag::upstream}; }
  [[nodiscard]] static Target leader() { return {0, 0}; }

  /// A request without a response.
  void tell(std::string topic, const nlohmann::json& payload, Target target);
  /// Waits for the answer; requests that come meanwhile are kept for next(). Error with the errno and the
  /// text of a refusal; ECONNRESET when the keeper has gone.
  proto::Message call(std::string topic, const nlohmann::json& payload, Target target);

  /// The module is there: the broker may go on.
  void running();
  /// The module cannot be loaded.
  void failed(int errnum);
  /// A line of the broker's log. Levels of RFC 5424: 3 err, 6 info.
  void log(int level, std::string_view text);

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
  /// Reads until a message is there; nothing at the end.
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
