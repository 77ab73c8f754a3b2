// The state of the keeper: the open requests, the positions of their streams, and the state of the module.
// Takes frames, and appends output to two buffers; uses no descriptors, processes or clocks.
//
// The broker ends the whole instance when the process of a module dies. Therefore the keeper is that process,
// and the service, which does the work, may die and be restarted:
//  - a plain request that the dead service had not answered is answered with EHOSTUNREACH,
//  - a request that comes while there is no service waits for the next one, up to some number and size,
//  - a stream is passed to the next service as it was requested, with the mark of its last response,
//  - the last report of each other rank, which comes once, is passed to the next service too,
//  - responses to requests of the dead service to the broker are dropped.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "flux/link/frames.hpp"
#include "proto/message.hpp"

namespace resourced::flux::keeper {

/// The state of the module in the view of the broker.
enum class State : std::uint8_t {
  /// The service has not reported yet that it is running.
  starting,
  running,
  /// The broker has asked the module to stop, and this was passed on to the service.
  stopping,
  /// The broker was informed that the module stops, and its response is awaited.
  leaving,
  /// The module has left: write for_broker(), and exit with 0.
  left,
};

class Relay {
 public:
  /// Takes a complete frame from the broker.
  void from_broker(std::string_view frame);
  /// Refuses a request that was received without its payload (FrameReader::is_cut).
  void refuse_cut(std::string_view frame);
  /// Takes a complete message from the service.
  void from_service(const link::LinkMessage& message);
  /// Call when a service process has started; passes the open streams to it. Counts generation(), which is
  /// the upper byte of the matchtags of its requests to the broker.
  void service_started();
  /// Call when the service process has ended, and all its complete messages have been taken. A module that
  /// was not running yet fails to load, unless the service `comes_again` and has not reported a failure.
  void service_ended(bool comes_again = false);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint8_t generation() const noexcept { return generation_; }
  /// Returns the generation of the service that starts next.
  [[nodiscard]] std::uint8_t next_generation() const noexcept;
  /// Number of requests that wait for their answer or stream.
  [[nodiscard]] std::size_t open() const noexcept { return rows_.size(); }

  /// Bytes to write. The caller removes those that it takes.
  std::string& for_broker() noexcept { return for_broker_; }
  std::string& for_service() noexcept { return for_service_; }

 private:
  /// A request that has no last response yet.
  struct Row {
    /// The request without its payload.
    proto::Message request;
    /// Whether responses may follow the first one. The streaming flag alone does not say so: responses to a
    /// plain request have it too if the request has it.
    bool is_stream = false;
    /// The encoded request, if it is for a stream, or no service has received it yet.
    std::string frame;
    /// The mark of the last response that was relayed.
    std::string mark;
    /// The encoded cancellation, once it has been received, if `frame` is for the next service.
    std::string cancel;

    [[nodiscard]] bool is_waiting() const noexcept { return !is_stream && !frame.empty(); }
    [[nodiscard]] std::string origin() const {
      return request.routes.empty() ? std::string() : request.routes.back();
    }
  };
  using Rows = std::map<std::uint64_t, Row>;
  /// Identifies a request. Matchtags are unique per origin only, and the origin alone does not identify a
  /// sender: a user chooses the first route of what a program sends for others.
  struct Key {
    std::string origin;
    std::uint32_t userid = 0;
    std::uint32_t matchtag = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// Counts of the plain requests that no service has received yet.
  struct Waiting {
    std::size_t number = 0;
    std::size_t bytes = 0;
    /// Number of these requests that are not from the owner.
    std::size_t of_guests = 0;
  };

  void request_from_broker(const link::Head& head, std::string_view frame);
  /// Registers a request. Returns false if it was refused, and is not for the service.
  [[nodiscard]] bool open_row(const link::Head& head, std::string_view frame);
  void note_disconnect(const link::Head& head);
  void note_cancel(const link::Head& head, std::string_view frame);
  void note_report(const link::Head& head, std::string_view frame);
  [[nodiscard]] bool may_wait(const link::Head& head, std::size_t size) const;
  void add_waiting(const Row& row);
  void forget_waiting(const Row& row);
  /// Returns the open request of the sender of `head`.
  [[nodiscard]] Rows::iterator find(const link::Head& head, std::uint32_t matchtag);
  void erase(Rows::iterator row);
  void refuse(const proto::Message& request, int errnum, std::string_view text);
  void say_status(std::string_view payload, std::uint32_t matchtag);
  void leave(std::uint32_t errnum);

  State state_ = State::starting;
  bool is_served_ = false;
  std::uint8_t generation_ = 0;
  /// The errno with which the module ends.
  std::uint32_t errnum_ = 0;
  std::uint64_t last_row_ = 0;
  Rows rows_;
  std::map<Key, std::uint64_t> by_key_;
  /// The services of which this service has requested streams.
  std::set<std::string, std::less<>> streams_from_;
  Waiting waiting_;
  /// Number of streams of each origin.
  std::map<std::string, std::size_t, std::less<>> streams_of_;
  /// The last reports of other ranks, by origin, for each new service.
  std::map<std::string, std::string, std::less<>> reports_;
  std::string for_broker_;
  std::string for_service_;
};

}  // namespace resourced::flux::keeper
