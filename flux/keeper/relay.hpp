// What the keeper knows: which requests are open, how far their streams have come, and in which state the
// module is. Frames come in, and what is to be written is appended to two buffers; there are no descriptors,
// processes and clocks here.
//
// The broker takes the whole instance down when the process of a module dies. So the keeper is that process,
// and the service, which does the work, may die and be started again:
//  - a plain request that the dead service had in hand is answered EHOSTUNREACH,
//  - a stream is handed to the next service as it was asked for, with the mark of its last response,
//  - responses to what the dead service had asked the broker for are dropped.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "flux/link/frames.hpp"
#include "proto/message.hpp"

namespace resourced::flux::keeper {

/// The state of the module as the broker knows it.
enum class State : std::uint8_t {
  /// The service has not said yet that it is running.
  starting,
  running,
  /// The broker has asked the module to stop, and the service has been told so.
  stopping,
  /// The broker has been told that the module stops, and is to answer that.
  leaving,
  /// All is said: write what is in for_broker() and exit with 0.
  left,
};

class Relay {
 public:
  /// A whole frame that has come from the broker.
  void from_broker(std::string_view frame);
  /// A whole message that has come from the service.
  void from_service(const link::LinkMessage& message);
  /// A service process is there, the nth since the keeper started, and is handed the open streams. Its
  /// requests to the broker have matchtags whose upper byte is generation().
  void service_started();
  /// The service process has ended, and all that it had sent in whole has come.
  void service_ended();
  /// The broker is shown a line of this text at level err (RFC 5424: severity 3).
  void log_error(std::string_view rank, std::string_view time, std::string_view text);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint8_t generation() const noexcept { return generation_; }
  /// How many requests wait for their answer or stream.
  [[nodiscard]] std::size_t open() const noexcept { return rows_.size(); }

  /// What is to be written. The caller takes from these.
  std::string& for_broker() noexcept { return for_broker_; }
  std::string& for_service() noexcept { return for_service_; }

 private:
  /// A request that has no last response yet.
  struct Row {
    /// Without its payload.
    proto::Message request;
    /// The whole request, if it is one for a stream.
    std::string frame;
    /// Of the last response that was relayed.
    std::string mark;
    /// The request that ends the stream, once it has come.
    std::string cancel;

    [[nodiscard]] bool is_stream() const noexcept { return request.has(proto::flag::streaming); }
    [[nodiscard]] bool is_from(std::string_view origin) const {
      return origin == (request.routes.empty() ? std::string_view() : request.routes.back());
    }
  };
  using Rows = std::map<std::uint64_t, Row>;

  void request_from_broker(const link::Head& head, std::string_view frame);
  void open_row(const link::Head& head, std::string_view frame);
  void note_disconnect(const link::Head& head);
  void note_cancel(const link::Head& head, std::string_view frame);
  [[nodiscard]] Rows::iterator find(std::string_view origin, std::uint32_t matchtag);
  void erase(Rows::iterator row);
  void refuse(const proto::Message& request, int errnum, std::string_view text);
  void say_status(std::string_view payload, std::uint32_t matchtag);
  void leave(std::uint32_t errnum);

  State state_ = State::starting;
  bool is_served_ = false;
  std::uint8_t generation_ = 0;
  /// The errno of the module's end.
  std::uint32_t errnum_ = 0;
  std::uint64_t last_row_ = 0;
  Rows rows_;
  /// By origin and matchtag, as matchtags are unique per origin only.
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> by_key_;
  /// The services of other modules that this service has streams of.
  std::set<std::string, std::less<>> streams_from_;
  std::string for_broker_;
  std::string for_service_;
};

}  // namespace resourced::flux::keeper
