// HTTP requests to etcd's JSON gateway in the loop of the process, by libcurl: connections that are used
// again, TLS, and look-ups of names, which do not wait for each other. libcurl.hpp has its functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "daemon/log/etcd/credentials.hpp"

namespace resourced::daemon::log::etcd {

struct HttpRequest {
  std::string url;
  std::string body;
  /// Value of the header Authorization; empty for none.
  std::string token;
};

struct HttpAnswer {
  /// HTTP status; 0 if there was no answer, for the reason `why`.
  unsigned status = 0;
  std::string body;
  std::string why;
  /// Whether bytes of the request may have reached the endpoint.
  bool was_sent = false;
};

class HttpClient {
 public:
  /// Called once, from the loop; it may destroy the client.
  using Handler = std::function<void(HttpAnswer)>;
  /// Called from the loop with lines that have come together, each with its end; it may end the watch and
  /// destroy the client.
  using TakeLines = std::function<void(const std::string&)>;

  /// Upper bound of the body of an answer: a page of batches in base64.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;
  /// Upper bound of a line of a watch, and of the body of its failure. The changes of a second take less.
  static constexpr std::size_t most_line_bytes = std::size_t{32} << 10;

  /// Each new connection reads the TLS files of `credentials` again.
  HttpClient(boost::asio::io_context& loop, const Credentials& credentials);
  /// Requests that are under way get no answer.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  HttpClient(HttpClient&&) = delete;
  HttpClient& operator=(HttpClient&&) = delete;

  /// Uses these TLS files from now on, on new connections. Requests that are under way, and the watch, go on
  /// over their connections, which no later request uses.
  void set_credentials(const Credentials& credentials);

  /// Sends a request, and calls `handler` with its answer, or after `timeout` without one.
  void post(HttpRequest request, std::chrono::milliseconds timeout, Handler handler);
  /// Sends a request whose answer is an endless stream of lines. It ends an earlier watch, without a call.
  /// The first line must come before `timeout`. `ended` is called at the end: with the answer of an endpoint
  /// that does not begin the stream, or with the reason why the stream has ended.
  void watch(HttpRequest request, std::chrono::milliseconds timeout, TakeLines lines, Handler ended);
  void end_watch();

 private:
  class Transfer;
  struct Socket;
  class Transfers;
  boost::asio::io_context& loop_;
  std::shared_ptr<Transfers> transfers_;
  /// Transfers that began before the last call of set_credentials(), until they have ended.
  std::vector<std::shared_ptr<Transfers>> former_;
};

}  // namespace resourced::daemon::log::etcd
