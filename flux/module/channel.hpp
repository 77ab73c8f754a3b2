// The service's side of the link to the keeper: it takes requests of the broker's clients, and sends requests
// to other modules. A program without an event loop waits for the next request, or for an answer; a program
// with one waits for the descriptor instead, and calls receive() and take().
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "flux/link/frames.hpp"
#include "proto/message.hpp"

namespace resourced::flux::module {

class Channel {
 public:
  /// `socket` and `generation` (Relay::generation()) come from the keeper. The channel owns the socket.
  /// `rank` is that of the broker, for lines of the log. Without `is_first` it is that of generation 1.
  Channel(int socket, std::uint8_t generation, std::uint32_t rank, std::optional<bool> is_first = {});
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Waits for and returns the next request or event; nothing when the keeper has ended.
  [[nodiscard]] std::optional<proto::Message> next();

  /// Whether this is the first service of the module: the keeper has not started another one before.
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }

  struct Received {
    proto::Message message;
    /// The mark of the last response, if this requests a stream that an earlier service began.
    std::string mark;
  };
  /// Makes later sends return without waiting: bytes that do not fit into the socket are kept for flush(),
  /// and `kept` is called each time.
  void stop_waiting(std::function<void()> kept) {
    waits_ = false;
    kept_ = std::move(kept);
  }
  /// Returns the descriptor, which is readable when receive() has something to read, and writable when
  /// flush() has room.
  [[nodiscard]] int descriptor() const noexcept { return socket_; }
  /// Reads available bytes, up to a bound. Returns false when the keeper has ended.
  [[nodiscard]] bool receive();
  /// Whether the request of a stream of this topic that an earlier service began was received, and waits for
  /// take().
  [[nodiscard]] bool has_resumed(std::string_view topic) const;
  /// Returns the next complete message, of any type.
  [[nodiscard]] std::optional<Received> take();
  /// Writes kept bytes until the socket is full.
  void flush();
  /// Writes all kept bytes. Waits while the socket is full, without a limit.
  void flush_all();
  /// Number of bytes that wait for flush().
  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_.size() - sent_to_; }

  /// Sends a response of a stream, with the mark of the position after it (link::LinkMessage).
  void send(const proto::Message& response, std::string_view mark = {});
  void respond(const proto::Message& request, proto::Payload payload = nullptr);
  void respond(const proto::Message& request, const nlohmann::json& object);
  void refuse(const proto::Message& request, const Error& error);

  struct Target {
    std::uint32_t nodeid = proto::nodeid_any;
    std::uint8_t flags = 0;
  };
  /// A target that is any broker on the way to the root that has the service.
  [[nodiscard]] static Target nearest() { return {}; }
  /// A target that is any broker on the way to the root except this one.
  [[nodiscard]] Target upstream() const { return {rank_, proto::flag::upstream}; }
  [[nodiscard]] static Target leader() { return {0, 0}; }

  /// Sends a request without a response.
  void tell(std::string topic, const nlohmann::json& payload, Target target);
  /// Sends a request and waits for the answer. Requests that are received meanwhile are kept for next().
  /// Throws Error with the errno and the text of a refusal; ECONNRESET when the keeper has ended.
  proto::Message call(std::string topic, const nlohmann::json& payload, Target target);
  /// Sends a request whose responses are read by await() or take(), and returns its matchtag.
  std::uint32_t ask(std::string topic, const nlohmann::json& payload, Target target, std::uint8_t flags = 0);
  /// Waits for the next response to a request, as call() does.
  proto::Message await(std::uint32_t matchtag);

  /// Reports that the module is running, so that the broker continues.
  void running();
  /// Reports that the module cannot be loaded.
  void failed(int errnum);
  /// Adds a line to the broker's log.
  void log(link::Severity severity, std::string_view text);
  void log_error(std::string_view text) { log(link::Severity::error, text); }

  /// Number of messages of each type since the last clear.
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
  void write(const link::LinkMessage& message);
  /// Returns the next message that was read completely.
  std::optional<Received> decode();
  /// Reads once. Returns false when the keeper has ended, or, without waiting, when nothing is available.
  bool read_more(int flags);
  /// Waits for and returns the next message; nothing when the keeper has ended.
  std::optional<Received> read();
  proto::Message request(std::string topic, const nlohmann::json& payload, Target target, std::uint8_t flags);

  int socket_;
  std::uint8_t generation_;
  bool is_first_;
  std::uint32_t rank_;
  std::uint32_t last_matchtag_ = 0;
  /// The matchtags of the requested streams.
  std::set<std::uint32_t> streams_;
  bool waits_ = true;
  std::function<void()> kept_ = [] {};
  bool is_over_ = false;
  link::LinkReader reader_;
  /// Messages that were received while another one was awaited.
  std::deque<Received> waiting_;
  std::string unsent_;
  /// The number of bytes of `unsent_` that were written.
  std::size_t sent_to_ = 0;
  Counts sent_;
  Counts received_;
};

}  // namespace resourced::flux::module
