#include "daemon/transport/local_connection.hpp"

#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "core/error.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {
namespace {

// As many bytes may wait for a peer that does not read; beyond that the connection counts as full.
constexpr std::size_t full_at = std::size_t{1} << 20;

constexpr char welcome = '\0';

// The buffer capacity that an idle connection keeps: most connections are idle.
constexpr std::size_t most_kept = 4096;

void give_back(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > most_kept) std::string().swap(buffer);
}

}  // namespace

LocalConnection::LocalConnection(Socket socket, std::size_t max_frame,
                                 std::chrono::milliseconds frame_timeout, Events events)
    : socket_(std::move(socket)),
      decoder_(max_frame),
      frame_timeout_(frame_timeout),
      frame_timer_(socket_.get_executor()),
      events_(std::move(events)),
      waiting_(1, welcome) {}

void LocalConnection::start() {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  write();
  read();
}

SendResult LocalConnection::send(const proto::Message& message) {
  if (!open_) return SendResult::gone;
  if (waiting_.size() >= full_at) {
    was_full_ = true;
    return SendResult::full;
  }
  proto::append_local_frame(waiting_, message);
  told_the_end_ = !reading_;
  write();
  return SendResult::sent;
}

void LocalConnection::stop_reading() {
  reading_ = false;
  // A frame that has begun need not be whole in time any more.
  watching_frame_ = false;
}

void LocalConnection::end_writing() {
  ends_writing_ = true;
  shut_if_written();
}

// A connection that was full gets more messages, so it is not shut down yet.
void LocalConnection::shut_if_written() {
  if (!ends_writing_ || !open_ || was_full_ || unsent() > 0) return;
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void LocalConnection::close() {
  open_ = false;
  frame_timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void LocalConnection::end() {
  if (!open_) return;
  close();
  events_.closed();
}

void LocalConnection::read() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    if (!self->open_) return;
    if (error) return self->end();
    self->events_.ready();
  });
}

void LocalConnection::take_turn() {
  const LoopHold hold(events_.holds, "reading");
  if (!open_) return;
  if (std::exchange(has_frames_, false)) {
    take_frames();
  } else {
    read_now();
  }
}

// All connections share one buffer, so that an idle one holds none.
void LocalConnection::read_now() {
  static thread_local std::array<char, 65536> received;
  boost::system::error_code error;
  const std::size_t size = socket_.read_some(boost::asio::buffer(received), error);
  if (error == boost::asio::error::would_block || error == boost::asio::error::interrupted) return read();
  if (error) return end();
  // Bytes must be taken from the socket even then: unread ones would make close() an error to the peer.
  if (!reading_) return read();
  decoder_.feed({received.data(), size});
  take_frames();
}

void LocalConnection::take_frames() {
  const Turn turn;
  try {
    do {
      if (!open_) return;
      if (!reading_) return read();
      const auto parts = decoder_.next();
      if (!parts) {
        watch_frame();
        return read();
      }
      watching_frame_ = false;
      events_.frame(*parts);
    } while (!turn.is_over());
  } catch (const Error& error) {
    return fail(error.what());
  }
  has_frames_ = true;
  events_.ready();
}

// A frame that begins and never ends would hold its memory, and its connection, for nothing.
void LocalConnection::watch_frame() {
  const bool partial = decoder_.pending() > 0;
  if (partial == std::exchange(watching_frame_, partial) || !partial) return;
  frame_timer_.expires_after(frame_timeout_);
  frame_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->open_ || !self->watching_frame_) return;
    // Called for an earlier frame, when a later one had begun already.
    if (self->frame_timer_.expiry() > std::chrono::steady_clock::now()) return;
    self->fail("it took longer than limits.handshake-timeout");
  });
}

void LocalConnection::fail(const std::string& reason) {
  events_.malformed(reason);
  end();
}

void LocalConnection::write() {
  if (!writing_.empty() || waiting_.empty()) return;
  writing_.swap(waiting_);
  write_some();
}

// Piece by piece, so that unsent() tells a peer that reads slowly from one that does not read.
void LocalConnection::write_some() {
  socket_.async_write_some(
      boost::asio::buffer(writing_) + written_,
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        const LoopHold hold(self->events_.holds, "writing");
        if (!self->open_) return;
        if (error) return self->end();
        self->written_ += size;
        if (self->written_ < self->writing_.size()) return self->write_some();
        give_back(self->writing_);
        self->written_ = 0;
        self->write();
        if (std::exchange(self->was_full_, false)) self->events_.writable();
        self->shut_if_written();
      });
}

}  // namespace resourced::daemon::transport
