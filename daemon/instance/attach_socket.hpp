// The Unix socket by which the keeper of a Flux instance attaches to a running daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/transport/socket_file.hpp"
#include "flux/link/attach.hpp"

namespace resourced::daemon::instance {

class AttachSocket {
 public:
  struct Callbacks {
    /// Returns whether a user may attach an instance: this gives the rights of the daemon's owner.
    std::function<bool(std::uint32_t userid)> admits;
    /// Takes an attachment. Returns the reason of a refusal in one line; empty if it is accepted.
    std::function<std::string(::resourced::flux::link::Attachment)> take;
  };
  /// Starts to listen. Throws Error that names the path.
  AttachSocket(boost::asio::io_context& loop, std::string path, Callbacks callbacks);
  ~AttachSocket();
  AttachSocket(const AttachSocket&) = delete;
  AttachSocket& operator=(const AttachSocket&) = delete;
  AttachSocket(AttachSocket&&) = delete;
  AttachSocket& operator=(AttachSocket&&) = delete;

  /// Whether the keeper of an instance finds the socket at its path.
  [[nodiscard]] bool is_reachable() const noexcept { return !file_ || file_->is_there(); }
  /// Accepts no further keepers.
  void stop();

 private:
  using Protocol = boost::asio::local::stream_protocol;
  /// A connection that has not sent its message yet. Its handlers share it, because several may be due at a
  /// time.
  struct Arrival;
  using SharedArrival = std::shared_ptr<Arrival>;

  void accept();
  void welcome(Protocol::socket socket);
  void wait(const SharedArrival& arrival);
  void read(const SharedArrival& arrival);
  static void answer(Protocol::socket& socket, std::string line);

  boost::asio::io_context& loop_;
  std::string path_;
  std::optional<transport::OwnSocketFile> file_;
  Callbacks callbacks_;
  Protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  std::set<SharedArrival> arrivals_;
};

}  // namespace resourced::daemon::instance
