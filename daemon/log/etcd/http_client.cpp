#include "daemon/log/etcd/http_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "daemon/log/etcd/libcurl.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr long status_ok = 200;
// Bytes of a watch that one turn of the loop takes: their lines need far less than a millisecond.
constexpr std::size_t bytes_at_once = 8192;

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  const CURLcode result = libcurl().easy_setopt(easy, option, value);
  if (result != CURLE_OK) throw Error(EINVAL, fmt::format("libcurl: {}", libcurl().easy_strerror(result)));
}

void set_tls(CURL* easy, const Credentials& files) {
  set(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  // Without a CA file, no certificates are read: libcurl would read all of the system for each connection.
  set(easy, CURLOPT_CAINFO, files.ca_file.empty() ? nullptr : files.ca_file.c_str());
  if (!files.ca_file.empty()) set(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
#if LIBCURL_VERSION_NUM >= 0x075700  // Earlier versions read the file for each connection.
  set(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
  if (files.certificate.empty()) return;
  set(easy, CURLOPT_SSLCERT, files.certificate.c_str());
  set(easy, CURLOPT_SSLKEY, files.key.c_str());
  set(easy, CURLOPT_KEYPASSWD, "");
}

}  // namespace

// One request, until its end.
class HttpClient::Transfer {
 public:
  Transfer(asio::io_context& loop, HttpRequest request, Handler handler)
      : done(std::move(handler)), timer(loop), request_(std::move(request)) {
    add_header("Content-Type: application/json");
    // Without "Expect: 100-continue", a large body is sent at once, without a question before it.
    add_header("Expect:");
    if (!request_.token.empty()) add_header("Authorization: " + request_.token);
    set(easy(), CURLOPT_URL, request_.url.c_str());
    set(easy(), CURLOPT_HTTPHEADER, headers_.get());
    set(easy(), CURLOPT_POSTFIELDS, request_.body.c_str());
    set(easy(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(easy(), CURLOPT_PROXY, "");
    // With HTTP/1.1, requests do not wait for each other, as those of one connection of HTTP/2 do.
    set(easy(), CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(easy(), CURLOPT_NOSIGNAL, 1L);
    // Keepalive finds within seconds that a host has gone, though nothing is sent to it. All requests set it,
    // as a watch may use the connection of an earlier request, which has the options of that one.
    set(easy(), CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy(), CURLOPT_TCP_KEEPIDLE, 5L);
    set(easy(), CURLOPT_TCP_KEEPINTVL, 2L);
#if LIBCURL_VERSION_NUM >= 0x075700
    // A request can end without waiting for the look-up of its host name.
    set(easy(), CURLOPT_QUICK_EXIT, 1L);
#endif
    set(easy(), CURLOPT_ERRORBUFFER, error_.data());
#ifdef CURL_PREREQFUNC_OK
    set(easy(), CURLOPT_PREREQFUNCTION, &Transfer::on_send);
    set(easy(), CURLOPT_PREREQDATA, this);
#endif
    set(easy(), CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
    set(easy(), CURLOPT_WRITEDATA, this);
  }

  [[nodiscard]] CURL* easy() const noexcept { return easy_.get(); }
  [[nodiscard]] long status() const {
    long status = 0;
    (void)libcurl().easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  [[nodiscard]] HttpAnswer answer(CURLcode result) {
    HttpAnswer answer;
    answer.was_sent = was_sent();
    if (result == CURLE_OK) {
      answer.status = static_cast<unsigned>(status());
      answer.body = std::move(received);
    } else if (result == CURLE_OPERATION_TIMEDOUT) {
      answer.why = "no answer in time";
    } else if (result == CURLE_WRITE_ERROR) {
      answer.why = lines ? "a line of a watch is too long" : "the answer is too long";
    } else {
      answer.why =
          json_text::printable_line(error_.front() != '\0' ? error_.data() : libcurl().easy_strerror(result));
    }
    return answer;
  }

  Handler done;
  /// Called with the lines of a watch; empty for an answer that is taken as a whole.
  TakeLines lines;
  /// Bounds the time until the answer, or the first line of a watch. It is not left to libcurl, whose bound
  /// of a watch would be that of all its lines.
  asio::steady_timer timer;
  /// The body of the answer; of a watch, the bytes that were not taken as lines yet.
  std::string received;
  /// Bytes that have come in this turn of the loop. A watch is paused until the next one if they are many.
  std::size_t taken = 0;
  bool is_paused = false;

 private:
  /// Whether etcd may have got the request, or a part of it.
  [[nodiscard]] bool was_sent() const {
#ifdef CURL_PREREQFUNC_OK
    return is_sending_;
#else
    // This leaves out bytes of a TLS record that is not complete, which etcd cannot decrypt.
    long bytes = 0;
    (void)libcurl().easy_getinfo(easy(), CURLINFO_REQUEST_SIZE, &bytes);
    return bytes != 0;
#endif
  }
#ifdef CURL_PREREQFUNC_OK
  // Libcurl calls it before the first byte, over a new or a used connection.
  static int on_send(void* self, char*, char*, int, int) {
    static_cast<Transfer*>(self)->is_sending_ = true;
    return CURL_PREREQFUNC_OK;
  }
#endif
  void add_header(const std::string& line) {
    headers_.reset(libcurl().slist_append(headers_.release(), line.c_str()));
  }

  static std::size_t on_bytes(const char* bytes, std::size_t, std::size_t size, void* transfer) {
    auto* const self = static_cast<Transfer*>(transfer);
    std::string& received = self->received;
    self->is_paused = self->lines && self->taken >= bytes_at_once;
    if (self->is_paused) return CURL_WRITEFUNC_PAUSE;
    self->taken += size;
    if (received.size() + size > most_bytes) return 0;
    received.append(bytes, size);
    return size;
  }

  HttpRequest request_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_{nullptr, libcurl().slist_free_all};
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_{libcurl().easy_init(), libcurl().easy_cleanup};
  std::array<char, CURL_ERROR_SIZE> error_{};
#ifdef CURL_PREREQFUNC_OK
  bool is_sending_ = false;
#endif
};

// A socket of libcurl, which also closes it.
struct HttpClient::Socket {
  Socket(asio::io_context& loop, int number) : descriptor(loop) {
    error_code ignored;
    descriptor.assign(number, ignored);
  }
  ~Socket() { release(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&&) = delete;
  Socket& operator=(Socket&&) = delete;

  void release() {
    if (descriptor.is_open()) descriptor.release();
  }

  asio::posix::stream_descriptor descriptor;
  /// Bits CURL_POLL_IN and CURL_POLL_OUT: the events that libcurl wants, and those that are waited for.
  int wanted = 0;
  int awaited = 0;
};

// All transfers of a client. Functions that libcurl calls only arm timers and waits: handlers are called
// after libcurl has returned.
class HttpClient::Transfers : public std::enable_shared_from_this<Transfers> {
 public:
  Transfers(asio::io_context& loop, Credentials files)
      : loop_(loop),
        files_(std::move(files)),
        timer_(loop),
        multi_(libcurl().multi_init(), libcurl().multi_cleanup) {
    (void)libcurl().multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &Transfers::on_socket);
    (void)libcurl().multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    (void)libcurl().multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &Transfers::on_timer);
    (void)libcurl().multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  }

  [[nodiscard]] bool is_idle() const noexcept { return transfers_.empty(); }

  void close() {
    while (!transfers_.empty()) take(transfers_.begin()->first);
  }

  void post(HttpRequest request, std::chrono::milliseconds timeout, Handler handler) {
    start(std::make_shared<Transfer>(loop_, std::move(request), std::move(handler)), timeout);
  }

  void watch(HttpRequest request, std::chrono::milliseconds timeout, TakeLines lines, Handler ended) {
    end_watch();
    const auto transfer = std::make_shared<Transfer>(loop_, std::move(request), std::move(ended));
    transfer->lines = std::move(lines);
    set(transfer->easy(), CURLOPT_BUFFERSIZE, static_cast<long>(bytes_at_once));
    watch_ = transfer.get();
    start(transfer, timeout);
  }

  void end_watch() {
    if (watch_ != nullptr) take(watch_->easy());
  }

 private:
  void start(const std::shared_ptr<Transfer>& transfer, std::chrono::milliseconds timeout) {
    CURL* const easy = transfer->easy();
    set_tls(easy, files_);
    transfers_.emplace(easy, transfer);
    (void)libcurl().multi_add_handle(multi_.get(), easy);
    transfer->timer.expires_after(timeout);
    transfer->timer.async_wait(
        [weak = weak_from_this(), weak_transfer = std::weak_ptr(transfer)](const error_code& error) {
          const auto self = weak.lock();
          const auto late = weak_transfer.lock();
          if (error || !self || !late || !self->transfers_.contains(late->easy())) return;
          // The timer may have expired just before it was cancelled.
          if (late->timer.expiry() > asio::steady_timer::clock_type::now()) return;
          self->finish(late->easy(), CURLE_OPERATION_TIMEDOUT);
        });
  }

  std::shared_ptr<Transfer> take(CURL* easy) {
    auto transfer = std::move(transfers_.extract(easy).mapped());
    (void)libcurl().multi_remove_handle(multi_.get(), easy);
    if (transfer.get() == watch_) watch_ = nullptr;
    return transfer;
  }

  void finish(CURL* easy, CURLcode result) {
    const auto transfer = take(easy);
    HttpAnswer answer = transfer->answer(result);
    if (transfer->lines && answer.status == status_ok) {
      answer.status = 0;
      answer.why = "the endpoint has ended the watch";
    }
    transfer->done(std::move(answer));
  }

  void drive(curl_socket_t socket, int events) {
    const auto self = shared_from_this();
    int running = 0;
    (void)libcurl().multi_socket_action(multi_.get(), socket, events, &running);
    deliver();
  }

  void deliver() {
    if (watch_ != nullptr && watch_->status() == status_ok) take_lines();
    if (watch_ != nullptr && watch_->received.size() > most_line_bytes)
      finish(watch_->easy(), CURLE_WRITE_ERROR);
    if (watch_ != nullptr) {
      watch_->taken = 0;
      if (watch_->is_paused) asio::post(loop_, [weak = weak_from_this()] { go_on(weak.lock()); });
    }
    int left = 0;
    while (const CURLMsg* const message = libcurl().multi_info_read(multi_.get(), &left))
      finish(message->easy_handle, message->data.result);
  }

  static void go_on(const std::shared_ptr<Transfers>& self) {
    if (!self || self->watch_ == nullptr || !self->watch_->is_paused) return;
    self->watch_->is_paused = false;
    (void)libcurl().easy_pause(self->watch_->easy(), CURLPAUSE_CONT);
    self->deliver();
  }

  void take_lines() {
    const std::size_t size = watch_->received.rfind('\n') + 1;
    if (size == 0) return;
    watch_->timer.expires_at(asio::steady_timer::time_point::max());
    const std::string lines = watch_->received.substr(0, size);
    watch_->received.erase(0, size);
    // Copied, as the call may end the watch.
    const TakeLines tell = watch_->lines;
    tell(lines);
  }

  static int on_timer(CURLM* /*multi*/, long milliseconds, void* transfers) {
    auto* const self = static_cast<Transfers*>(transfers);
    if (milliseconds < 0) {
      self->timer_.cancel();
      return 0;
    }
    self->timer_.expires_after(std::chrono::milliseconds(milliseconds));
    self->timer_.async_wait([weak = self->weak_from_this()](const error_code& error) {
      const auto alive = weak.lock();
      if (!error && alive) alive->drive(CURL_SOCKET_TIMEOUT, 0);
    });
    return 0;
  }

  static int on_socket(CURL* /*easy*/, curl_socket_t number, int wanted, void* transfers, void* /*unused*/) {
    auto* const self = static_cast<Transfers*>(transfers);
    std::shared_ptr<Socket>& socket = self->sockets_[number];
    if (wanted == CURL_POLL_REMOVE) {
      // Released before libcurl closes it, as the next socket may have its number.
      if (socket) socket->release();
      self->sockets_.erase(number);
      return 0;
    }
    if (!socket) socket = std::make_shared<Socket>(self->loop_, number);
    socket->wanted = wanted;
    self->await(socket);
    return 0;
  }

  void await(const std::shared_ptr<Socket>& socket) {
    using Descriptor = asio::posix::stream_descriptor;
    await(socket, CURL_POLL_IN, Descriptor::wait_read);
    await(socket, CURL_POLL_OUT, Descriptor::wait_write);
  }

  // The bits CURL_POLL_IN and CURL_POLL_OUT equal CURL_CSELECT_IN and CURL_CSELECT_OUT.
  void await(const std::shared_ptr<Socket>& socket, int event,
             asio::posix::stream_descriptor::wait_type type) {
    if ((socket->wanted & ~socket->awaited & event) == 0) return;
    socket->awaited |= event;
    socket->descriptor.async_wait(
        type, [weak = weak_from_this(), weak_socket = std::weak_ptr(socket), event](const error_code& error) {
          const auto self = weak.lock();
          const auto found = weak_socket.lock();
          if (error || !self || !found) return;
          found->awaited &= ~event;
          if ((found->wanted & event) != 0) self->drive(found->descriptor.native_handle(), event);
          if (found->descriptor.is_open()) self->await(found);
        });
  }

  asio::io_context& loop_;
  Credentials files_;
  asio::steady_timer timer_;
  std::map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_;
  std::map<CURL*, std::shared_ptr<Transfer>> transfers_;
  /// The transfer of the watch; null if there is none.
  Transfer* watch_ = nullptr;
};

HttpClient::HttpClient(asio::io_context& loop, const Credentials& credentials)
    : loop_(loop), transfers_(std::make_shared<Transfers>(loop, credentials)) {}

HttpClient::~HttpClient() {
  for (const auto& former : former_) former->close();
  transfers_->close();
}

void HttpClient::set_credentials(const Credentials& credentials) {
  former_.push_back(std::exchange(transfers_, std::make_shared<Transfers>(loop_, credentials)));
}

void HttpClient::post(HttpRequest request, std::chrono::milliseconds timeout, Handler handler) {
  std::erase_if(former_, [](const auto& former) { return former->is_idle(); });
  transfers_->post(std::move(request), timeout, std::move(handler));
}

void HttpClient::watch(HttpRequest request, std::chrono::milliseconds timeout, TakeLines lines,
                       Handler ended) {
  end_watch();
  transfers_->watch(std::move(request), timeout, std::move(lines), std::move(ended));
}

void HttpClient::end_watch() {
  for (const auto& former : former_) former->end_watch();
  transfers_->end_watch();
}

}  // namespace resourced::daemon::log::etcd
