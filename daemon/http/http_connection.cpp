#include "daemon/http/http_connection.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/http/status.hpp"

namespace resourced::daemon::http {
namespace {

// Maximum size of a piece of a body that is passed to the socket at once.
constexpr std::size_t most_at_once = std::size_t{64} << 10;
// Number of unsent bytes at which a stream waits: it then takes its next events from the journal.
constexpr std::size_t full_at = std::size_t{256} << 10;
// Smaller payloads of streams than this are copied, so that an event is one write.
constexpr std::size_t most_copied = 4096;
// Maximum number of ignored bytes that a client may send, in a stream or after its last request.
constexpr std::size_t most_discarded = std::size_t{64} << 10;

}  // namespace

HttpConnection::HttpConnection(const boost::asio::any_io_executor& executor, std::shared_ptr<Wire> wire,
                               const Patience& patience, Events events)
    : wire_(std::move(wire)), patience_(patience), events_(std::move(events)), timer_(executor) {}

void HttpConnection::start() {
  set_deadline(patience_.request);
  wire_->greet([self = shared_from_this()](const boost::system::error_code& error, std::size_t /*none*/) {
    if (self->phase_ == Phase::closed) return;
    const transport::LoopHold hold(self->events_.holds, "http");
    if (error) return self->end();
    self->await_request();
  });
}

void HttpConnection::await_request() {
  if (stops_) return begin_closing();
  phase_ = Phase::reading;
  has_begun_ = !received_.empty();
  if (has_begun_) {
    set_deadline(patience_.request);
    return events_.ready();
  }
  if (has_ended_) return end();
  set_deadline(patience_.idle);
  read();
}

void HttpConnection::read() {
  if (is_reading_ || has_ended_) return;
  is_reading_ = true;
  wire_->read_some(boost::asio::buffer(chunk_),
                   [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                     if (self->phase_ == Phase::closed) return;
                     const transport::LoopHold hold(self->events_.holds, "http");
                     self->is_reading_ = false;
                     self->on_read(error, size);
                   });
}

void HttpConnection::on_read(const boost::system::error_code& error, std::size_t size) {
  if (error) {
    has_ended_ = true;
    // Serve the request: a client may end its side and still wait for the response.
    if (phase_ == Phase::serving || phase_ == Phase::writing) return;
    return end();
  }
  if (phase_ == Phase::streaming || phase_ == Phase::closing) {
    discarded_ += size;
    return discarded_ > most_discarded ? end() : read();
  }
  // Start the time of the request with its first byte, which may be in empty lines before it.
  if (!std::exchange(has_begun_, true)) set_deadline(patience_.request);
  received_.append(chunk_.data(), size);
  if (phase_ == Phase::reading) events_.ready();
}

void HttpConnection::take_turn() {
  const transport::LoopHold hold(events_.holds, "http");
  if (phase_ != Phase::reading) return;
  const auto taken = take_request(received_);
  if (std::holds_alternative<Incomplete>(taken)) return read();
  phase_ = Phase::serving;
  // No deadline: the service has its own time limits.
  deadline_ = Clock::time_point::max();
  if (const auto* refusal = std::get_if<Refusal>(&taken)) {
    received_.clear();
    return events_.refused(*refusal);
  }
  events_.request(std::get<Request>(taken));
}

void HttpConnection::respond(std::string head, std::string_view body, const proto::Payload& owner,
                             bool keeps_alive) {
  if (phase_ != Phase::serving) return;
  phase_ = Phase::writing;
  keeps_alive_ = keeps_alive;
  response_deadline_ = Clock::now() + patience_.response;
  set_deadline(patience_.stall);
  if (owner == nullptr || body.size() <= most_copied) {
    head.append(body);
    push(std::move(head));
  } else {
    push(std::move(head));
    push(body, owner);
  }
  write();
}

void HttpConnection::begin_stream(std::string head) {
  if (phase_ != Phase::serving) return;
  phase_ = Phase::streaming;
  set_deadline(patience_.silence);
  push(std::move(head));
  write();
  // Read on, to detect the client's end.
  read();
}

bool HttpConnection::is_full() {
  was_full_ = was_full_ || unsent_ >= full_at;
  return was_full_;
}

void HttpConnection::stream(std::string before, std::string_view data, const proto::Payload& owner,
                            std::string_view after) {
  if (phase_ != Phase::streaming) return;
  if (data.size() <= most_copied) {
    before.append(data).append(after);
    push(std::move(before));
  } else {
    push(std::move(before));
    push(data, owner);
    push(std::string(after));
  }
  if (!is_writing_) set_deadline(patience_.stall);
  write();
}

void HttpConnection::end_stream(std::string last) {
  if (phase_ != Phase::streaming) return;
  phase_ = Phase::writing;
  keeps_alive_ = false;
  response_deadline_ = Clock::now() + patience_.response;
  set_deadline(patience_.stall);
  push(std::move(last));
  write();
}

void HttpConnection::push(std::string own) {
  change_unsent(static_cast<std::ptrdiff_t>(own.size()));
  Piece& piece = pieces_.emplace_back(Piece{std::move(own), nullptr, {}});
  piece.bytes = piece.own;
}

void HttpConnection::push(std::string_view bytes, const proto::Payload& owner) {
  change_unsent(static_cast<std::ptrdiff_t>(bytes.size()));
  pieces_.push_back(Piece{{}, owner, bytes});
}

void HttpConnection::change_unsent(std::ptrdiff_t bytes) {
  unsent_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(unsent_) + bytes);
  events_.unsent_changed(bytes);
}

void HttpConnection::write() {
  if (is_writing_ || pieces_.empty()) return;
  is_writing_ = true;
  const std::string_view bytes = pieces_.front().bytes.substr(0, most_at_once);
  wire_->write_some(boost::asio::buffer(bytes.data(), bytes.size()),
                    [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                      if (self->phase_ == Phase::closed) return;
                      const transport::LoopHold hold(self->events_.holds, "http");
                      self->is_writing_ = false;
                      self->on_written(error, size);
                    });
}

void HttpConnection::on_written(const boost::system::error_code& error, std::size_t size) {
  if (error) return end();
  Piece& piece = pieces_.front();
  piece.bytes.remove_prefix(size);
  if (piece.bytes.empty()) pieces_.pop_front();
  change_unsent(-static_cast<std::ptrdiff_t>(size));
  if (pieces_.empty()) {
    after_writing();
  } else {
    set_deadline(patience_.stall);
    write();
  }
  if (phase_ == Phase::streaming && was_full_ && unsent_ <= full_at / 2) {
    was_full_ = false;
    events_.writable();
  }
}

void HttpConnection::after_writing() {
  if (phase_ == Phase::streaming) return set_deadline(patience_.silence);
  if (phase_ != Phase::writing) return;
  if (!keeps_alive_) return begin_closing();
  await_request();
}

// Starts to close. Closing with unread bytes would reset the connection, and could destroy the response on
// its way.
void HttpConnection::begin_closing() {
  if (has_ended_) return end();
  phase_ = Phase::closing;
  set_deadline(patience_.closing);
  wire_->end_writing();
  read();
}

void HttpConnection::stop_reading() {
  stops_ = true;
  if (phase_ == Phase::reading || phase_ == Phase::greeting) end();
}

void HttpConnection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  timer_.cancel();
  wire_->close();
  // Keep pieces that are being written until the handler is called with the error.
  change_unsent(-static_cast<std::ptrdiff_t>(unsent_));
}

void HttpConnection::end() {
  if (phase_ == Phase::closed) return;
  close();
  events_.closed();
}

void HttpConnection::set_deadline(std::chrono::milliseconds after) {
  deadline_ = Clock::now() + after;
  if (phase_ == Phase::writing) deadline_ = std::min(deadline_, response_deadline_);
  watch();
}

// Sets the timer. It keeps running when the deadline moves to a later time, so most requests do not set it.
void HttpConnection::watch() {
  if (deadline_ == Clock::time_point::max()) return;
  if (is_timed_ && timer_.expiry() <= deadline_) return;
  is_timed_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->phase_ == Phase::closed) return;
    self->is_timed_ = false;
    if (Clock::now() < self->deadline_) return self->watch();
    self->on_deadline();
  });
}

void HttpConnection::on_deadline() {
  const transport::LoopHold hold(events_.holds, "http");
  if (phase_ == Phase::streaming && pieces_.empty()) {
    push(":\n\n");
    set_deadline(patience_.stall);
    return write();
  }
  if (phase_ == Phase::reading && has_begun_) {
    phase_ = Phase::serving;
    received_.clear();
    return events_.refused({Status::request_timeout, "the request took too long"});
  }
  end();
}

}  // namespace resourced::daemon::http
