#include "daemon/log/etcd/channel.hpp"

#include <array>
#include <optional>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/json/utf8.hpp"
#include "daemon/log/etcd/answer_reader.hpp"
#include "daemon/log/etcd/link.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t most_idle = 4;
// Not more than a record of TLS has.
constexpr std::size_t bytes_in_piece = std::size_t{16} << 10;

}  // namespace

struct Channel::Pool {
  Pool(asio::io_context& context, config::EtcdEndpoint to, std::shared_ptr<asio::ssl::context> with)
      : loop(context), endpoint(std::move(to)), tls(std::move(with)) {}

  asio::io_context& loop;
  config::EtcdEndpoint endpoint;
  std::shared_ptr<asio::ssl::context> tls;
  std::vector<std::shared_ptr<Connection>> idle;
};

// One request at a time. Its handlers hold it, and it holds no pool that has gone.
class Channel::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(const std::shared_ptr<Pool>& pool)
      : pool_(pool), link_(pool->loop, pool->endpoint, pool->tls), timer_(pool->loop) {}

  void post(const HttpRequest& request, std::chrono::milliseconds timeout, Handler handler) {
    handler_ = std::move(handler);
    was_sent_ = false;
    request_ = bytes_of(request, link_.endpoint());
    timer_.expires_after(timeout);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      // One that was due already when the request ended is of before.
      const bool is_due = self->timer_.expiry() <= asio::steady_timer::clock_type::now();
      if (!error && is_due) self->fail("no answer in time");
    });
    if (is_open_) return write();
    link_.open([self = shared_from_this()](const error_code& error) {
      if (self->is_over(error)) return;
      self->is_open_ = true;
      self->write();
    });
  }

  void close() {
    handler_ = nullptr;
    is_open_ = false;
    timer_.cancel();
    link_.close();
  }

 private:
  // Whether the request has ended: before, or with this error.
  bool is_over(const error_code& error) {
    if (handler_ && error) fail(error.message());
    return !handler_;
  }

  void fail(const std::string& why) {
    if (!handler_) return;
    HttpAnswer answer;
    answer.why = json_text::printable_line(why);
    answer.was_sent = was_sent_;
    const Handler handler = std::exchange(handler_, nullptr);
    close();
    handler(std::move(answer));
  }

  void write() {
    was_sent_ = true;
    answer_.emplace(most_bytes);
    link_.write(asio::buffer(request_),
                [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                  if (self->is_over(error)) return;
                  self->read();
                });
  }

  void read() {
    link_.read_some(asio::buffer(piece_),
                    [self = shared_from_this()](const error_code& error, std::size_t size) {
                      if (self->handler_) self->take(error, size);
                    });
  }

  void take(const error_code& error, std::size_t size) {
    const bool is_end = error == asio::error::eof;
    if (error && !is_end) return fail(error.message());
    const error_code why = is_end ? answer_->put_end() : answer_->put({piece_.data(), size});
    if (why) return fail(why.message());
    if (!answer_->is_done()) return read();
    finish();
  }

  void finish() {
    timer_.cancel();
    HttpAnswer answer;
    answer.status = answer_->status();
    answer.body = answer_->take_body();
    answer.was_sent = true;
    const bool keeps = answer_->keeps_alive();
    answer_.reset();
    const Handler handler = std::exchange(handler_, nullptr);
    const auto pool = pool_.lock();
    if (keeps && pool && pool->idle.size() < most_idle) {
      pool->idle.push_back(shared_from_this());
    } else {
      close();
    }
    handler(std::move(answer));
  }

  std::weak_ptr<Pool> pool_;
  Link link_;
  asio::steady_timer timer_;
  bool is_open_ = false;
  bool was_sent_ = false;
  Handler handler_;
  std::string request_;
  std::optional<AnswerReader> answer_;
  std::array<char, bytes_in_piece> piece_{};
};

Channel::Channel(asio::io_context& loop, config::EtcdEndpoint endpoint,
                 std::shared_ptr<asio::ssl::context> tls)
    : pool_(std::make_shared<Pool>(loop, std::move(endpoint), std::move(tls))) {}

Channel::~Channel() {
  for (const auto& connection : pool_->idle) connection->close();
}

void Channel::post(const HttpRequest& request, std::chrono::milliseconds timeout, Handler handler) {
  std::shared_ptr<Connection> connection;
  if (pool_->idle.empty()) {
    connection = std::make_shared<Connection>(pool_);
  } else {
    connection = std::move(pool_->idle.back());
    pool_->idle.pop_back();
  }
  connection->post(request, timeout, std::move(handler));
}

std::unique_ptr<LineStream> Channel::open_stream(const HttpRequest& request,
                                                 std::chrono::milliseconds timeout,
                                                 LineStream::Callbacks callbacks) {
  return std::make_unique<LineStream>(pool_->loop, pool_->endpoint, pool_->tls, request, timeout,
                                      std::move(callbacks));
}

}  // namespace resourced::daemon::log::etcd
