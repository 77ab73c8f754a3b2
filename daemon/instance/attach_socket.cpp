#include "daemon/instance/attach_socket.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include "core/error.hpp"
#include "daemon/transport/socket_file.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace link = ::resourced::flux::link;
using boost::system::error_code;

namespace {

/// Time limit for the message of a keeper, which sends it as soon as it is connected.
constexpr std::chrono::seconds longest_message{5};
constexpr std::chrono::milliseconds retry_after{200};
constexpr std::size_t most_arrivals = 16;

}  // namespace

struct AttachSocket::Arrival {
  Protocol::socket socket;
  asio::steady_timer limit;
};

AttachSocket::AttachSocket(asio::io_context& loop, std::string path, Callbacks callbacks)
    : loop_(loop), path_(std::move(path)), callbacks_(std::move(callbacks)), acceptor_(loop), retry_(loop) {
  const std::string name = "flux://" + path_;
  transport::clear_socket(path_, name);
  const transport::PrivateSockets until_the_mode_is_set;
  error_code error;
  acceptor_.open(Protocol(), error);
  if (!error) acceptor_.bind(Protocol::endpoint(path_), error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw Error(error.value(), fmt::format("cannot listen on {}: {}", name, error.message()));
  file_.emplace(path_);
  // Allow all users to connect: admits() decides.
  transport::set_socket_mode(path_, {});
  accept();
}

AttachSocket::~AttachSocket() = default;

void AttachSocket::stop() {
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const SharedArrival& arrival : arrivals_) arrival->socket.cancel(ignored);
}

void AttachSocket::accept() {
  acceptor_.async_accept([this](const error_code& error, Protocol::socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error) {
      welcome(std::move(socket));
      return accept();
    }
    // Retry later: the process has no descriptor left, for instance.
    retry_.expires_after(retry_after);
    retry_.async_wait([this](const error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

void AttachSocket::welcome(Protocol::socket socket) {
  const auto peer = transport::peer_process(socket.native_handle());
  if (!peer || !callbacks_.admits(peer->userid)) {
    return answer(socket, fmt::format("uid {} may not attach: see flux.user in the daemon's configuration",
                                      peer ? std::to_string(peer->userid) : "unknown"));
  }
  if (arrivals_.size() >= most_arrivals) return answer(socket, "too many others are attaching");
  const auto arrival = std::make_shared<Arrival>(Arrival{std::move(socket), asio::steady_timer(loop_)});
  arrivals_.insert(arrival);
  arrival->limit.expires_after(longest_message);
  arrival->limit.async_wait([arrival](const error_code& error) {
    error_code ignored;
    if (!error) arrival->socket.cancel(ignored);
  });
  wait(arrival);
}

void AttachSocket::wait(const SharedArrival& arrival) {
  arrival->socket.async_wait(Protocol::socket::wait_read, [this, arrival](const error_code& error) {
    if (!error) return read(arrival);
    arrivals_.erase(arrival);
  });
}

void AttachSocket::read(const SharedArrival& arrival) {
  std::string line;
  try {
    arrival->socket.native_non_blocking(true);
    auto attachment = link::receive_attachment(arrival->socket.native_handle());
    if (!attachment) return wait(arrival);
    line = callbacks_.take(*std::move(attachment));
    if (line.empty()) line = link::attached;
  } catch (const std::exception& error) {
    line = error.what();
  }
  answer(arrival->socket, std::move(line));
  arrival->limit.cancel();
  arrivals_.erase(arrival);
}

void AttachSocket::answer(Protocol::socket& socket, std::string line) {
  line += '\n';
  // Ignore errors: a short line always fits, and a keeper that is gone does not need it.
  (void)::send(socket.native_handle(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace resourced::daemon::instance
