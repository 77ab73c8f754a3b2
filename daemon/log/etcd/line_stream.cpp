#include "daemon/log/etcd/line_stream.hpp"

#include <array>
#include <optional>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/json/utf8.hpp"
#include "daemon/log/etcd/answer_reader.hpp"
#include "daemon/log/etcd/link.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr unsigned ok = 200;
// So little that its lines take far less than a millisecond.
constexpr std::size_t bytes_at_once = 8192;

// A host that has gone is noticed after some seconds, though nothing is sent to it.
void keep_alive(int socket) {
  const auto set = [socket](int level, int name, int value) {
    (void)::setsockopt(socket, level, name, &value, sizeof(value));
  };
  constexpr int idle_seconds = 5;
  constexpr int seconds_between = 2;
  constexpr int probes = 3;
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds_between);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
}

}  // namespace

// Its handlers hold it.
class LineStream::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& loop, const config::EtcdEndpoint& endpoint,
             std::shared_ptr<asio::ssl::context> tls, const HttpRequest& request, Callbacks callbacks)
      : link_(loop, endpoint, std::move(tls)),
        timer_(loop),
        request_(bytes_of(request, endpoint)),
        callbacks_(std::move(callbacks)) {}

  void start(std::chrono::milliseconds timeout) {
    timer_.expires_after(timeout);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->fail("no answer in time");
    });
    link_.open([self = shared_from_this()](const error_code& error) {
      if (self->goes_on(error)) self->write();
    });
  }

  void close() {
    is_over_ = true;
    timer_.cancel();
    link_.close();
  }

 private:
  bool goes_on(const error_code& error) {
    if (error) fail(error.message());
    return !is_over_;
  }

  void fail(const std::string& why) {
    HttpAnswer answer;
    answer.why = json_text::printable_line(why);
    answer.was_sent = was_sent_;
    end(answer);
  }

  void end(const HttpAnswer& answer) {
    if (is_over_) return;
    close();
    callbacks_.ended(answer);
  }

  void write() {
    was_sent_ = true;
    keep_alive(link_.socket().native_handle());
    link_.write(asio::buffer(request_),
                [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                  if (self->goes_on(error)) self->read();
                });
  }

  void read() {
    link_.read_some(asio::buffer(piece_),
                    [self = shared_from_this()](const error_code& error, std::size_t size) {
                      const bool is_end = error == asio::error::eof;
                      if (self->goes_on(is_end ? error_code() : error)) self->take(is_end, size);
                    });
  }

  void take(bool is_end, std::size_t size) {
    error_code error;
    answer_.add({piece_.data(), is_end ? 0 : size});
    // etcd has its lines in a chunk each, and each is told.
    while (answer_.step(error)) {
      take_lines();
      if (is_over_) return;
    }
    if (is_end && !error) error = answer_.put_end();
    if (error) return fail(error.message());
    if (answer_.is_done()) return finish();
    read();
  }

  void take_lines() {
    const std::string part = answer_.take_body();
    const std::size_t end = answer_.status() == ok ? part.rfind('\n') : std::string::npos;
    text_ += part;
    if (end != std::string::npos) {
      timer_.cancel();
      const std::size_t size = text_.size() - part.size() + end + 1;
      const std::string lines = text_.substr(0, size);
      text_.erase(0, size);
      callbacks_.lines(lines);
      if (is_over_) return;
    }
    if (text_.size() > most_line_bytes) fail("a line of a watch is too long");
  }

  void finish() {
    if (answer_.status() == ok) return fail("the endpoint has ended the watch");
    HttpAnswer answer;
    answer.status = answer_.status();
    answer.body = std::move(text_);
    answer.was_sent = true;
    end(answer);
  }

  Link link_;
  asio::steady_timer timer_;
  std::string request_;
  Callbacks callbacks_;
  bool was_sent_ = false;
  bool is_over_ = false;
  /// The reader has no limit of length: a watch may bring the changes of days.
  AnswerReader answer_{std::nullopt};
  std::array<char, bytes_at_once> piece_{};
  /// What has come after the last whole line.
  std::string text_;
};

LineStream::LineStream(asio::io_context& loop, const config::EtcdEndpoint& endpoint,
                       std::shared_ptr<asio::ssl::context> tls, const HttpRequest& request,
                       std::chrono::milliseconds timeout, Callbacks callbacks)
    : connection_(
          std::make_shared<Connection>(loop, endpoint, std::move(tls), request, std::move(callbacks))) {
  connection_->start(timeout);
}

LineStream::~LineStream() { connection_->close(); }

}  // namespace resourced::daemon::log::etcd
