#include "daemon/log/etcd/channel.hpp"

#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "core/json/utf8.hpp"
#include "daemon/log/etcd/link.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t most_idle = 4;

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
    request_ = message_of(request, link_.endpoint());
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
    link_.with_stream([this](auto& stream) {
      http::async_write(stream, request_,
                        [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                          if (self->is_over(error)) return;
                          self->read();
                        });
    });
  }

  void read() {
    parser_ = std::make_unique<http::response_parser<http::string_body>>();
    parser_->body_limit(most_bytes);
    link_.with_stream([this](auto& stream) {
      http::async_read(stream, buffer_, *parser_,
                       [self = shared_from_this()](const error_code& error, std::size_t /*size*/) {
                         if (self->is_over(error)) return;
                         self->finish();
                       });
    });
  }

  void finish() {
    timer_.cancel();
    HttpAnswer answer;
    answer.status = parser_->get().result_int();
    answer.body = std::move(parser_->get().body());
    answer.was_sent = true;
    const bool keeps = parser_->get().keep_alive() && buffer_.size() == 0;
    parser_.reset();
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
  http::request<http::string_body> request_;
  boost::beast::flat_buffer buffer_;
  std::unique_ptr<http::response_parser<http::string_body>> parser_;
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
