#include "daemon/transport/local_connection.hpp"

#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "core/error.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {
namespace {

// Bytes that may wait for a peer that does not read. With more, the connection counts as full.
constexpr std::size_t full_at = std::size_t{1} << 20;

constexpr char welcome = '\0';

// Capacity of a buffer that an idle connection keeps, as most connections are idle.
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
  // Lift the time limit of a frame that has begun, as it is not handled any more.
  watching_frame_ = false;
}

void LocalConnection::end_writing() {
  ends_writing_ = true;
  shut_if_written();
}

// Ends the stream once all is written. A connection that was full still gets messages, so it stays open.
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

// Reads into a buffer that all connections share, so that an idle connection holds none.
void LocalConnection::read_now() {
  static thread_local std::array<char, 65536> received;
  boost::system::error_code error;
  const std::size_t size = socket_.read_some(boost::asio::buffer(received), error);
  if (error == boost::asio::error::would_block || error == boost::asio::error::interrupted) return read();
  if (error) return end();
  // Discard the bytes after stop_reading(): if they stayed unread, the peer would see an error at close().
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

// Starts the time limit of an incomplete frame, which would else hold memory and its connection for ever.
void LocalConnection::watch_frame() {
  const bool partial = decoder_.pending() > 0;
  if (partial == std::exchange(watching_frame_, partial) || !partial) return;
  frame_timer_.expires_after(frame_timeout_);
  frame_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->open_ || !self->watching_frame_) return;
    // This call is for an earlier frame: it was queued before the present one began.
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

// Writes piece by piece, so that unsent() tells a peer that reads slowly from one that does not read.
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
