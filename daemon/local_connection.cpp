#include "daemon/local_connection.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "core/error.hpp"

namespace resourced::daemon {
namespace {

// As many bytes may wait for a peer that does not read; beyond that the connection counts as full.
constexpr std::size_t full_at = std::size_t{1} << 20;

constexpr char welcome = '\0';

}  // namespace

LocalConnection::LocalConnection(Socket socket, std::size_t max_frame, Events events)
    : socket_(std::move(socket)), decoder_(max_frame), events_(std::move(events)), waiting_(1, welcome) {}

void LocalConnection::start() {
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
  write();
  return SendResult::sent;
}

void LocalConnection::stop_reading() { reading_ = false; }

void LocalConnection::close() {
  open_ = false;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void LocalConnection::end() {
  if (!open_) return;
  close();
  events_.closed();
}

void LocalConnection::read() {
  socket_.async_read_some(
      boost::asio::buffer(received_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        if (!self->open_) return;
        if (error) return self->end();
        self->take_in(size);
        if (self->open_ && self->reading_) self->read();
      });
}

void LocalConnection::take_in(std::size_t size) {
  try {
    decoder_.feed({received_.data(), size});
    while (open_ && reading_) {
      const auto parts = decoder_.next();
      if (!parts) return;
      events_.frame(*parts);
    }
  } catch (const Error& error) {
    events_.malformed(error.what());
    end();
  }
}

void LocalConnection::write() {
  if (!writing_.empty() || waiting_.empty()) return;
  writing_.swap(waiting_);
  boost::asio::async_write(
      socket_, boost::asio::buffer(writing_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t /*size*/) {
        if (!self->open_) return;
        if (error) return self->end();
        self->writing_.clear();
        self->write();
        if (std::exchange(self->was_full_, false)) self->events_.writable();
      });
}

}  // namespace resourced::daemon
