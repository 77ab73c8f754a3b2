// The end of an HTTP server with TLS, whatever its clients do. AddressSanitizer finds memory that is used
// after the end.
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include "daemon/http/http_transport.hpp"

namespace resourced::daemon::http {
namespace {

namespace asio = boost::asio;

struct HttpListener final : transport::Listener {
  void on_client(transport::Transport& server, proto::ClientId /*client*/,
                 const transport::Credentials& /*credentials*/) override {
    transport = &server;
  }
  void on_message(proto::ClientId client, proto::Message message) override {
    ++messages;
    // This response is larger than a socket takes at once. Other requests are never answered.
    if (message.topic == "resource.get") {
      (void)transport->send(client, proto::make_response(message, proto::make_payload(large)));
    }
  }
  void on_gone(proto::ClientId /*client*/) override {}
  void on_writable() override {}
  void on_malformed(proto::ClientId /*client*/, const std::string& /*reason*/) override {}
  void on_refused(const std::string& /*reason*/) override {}

  transport::Transport* transport = nullptr;
  std::size_t messages = 0;
  std::string large = std::string(std::size_t{8} << 20, 'x');
};

/// TLS with ciphers that need no certificate.
std::shared_ptr<asio::ssl::context> without_certificate() {
  auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tlsv12);
  SSL_CTX_set_security_level(tls->native_handle(), 0);
  REQUIRE(SSL_CTX_set_cipher_list(tls->native_handle(), "aNULL") == 1);
  return tls;
}

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port) {
    stream_.lowest_layer().connect({asio::ip::address_v4::loopback(), port});
  }
  void greet() { stream_.handshake(asio::ssl::stream_base::client); }
  void ask(std::string_view target) {
    const std::string request = "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    asio::write(stream_, asio::buffer(request));
  }
  void read_head() { asio::read_until(stream_, head_, "\r\n\r\n"); }

 private:
  asio::io_context loop_;
  std::shared_ptr<asio::ssl::context> tls_ = without_certificate();
  asio::ssl::stream<asio::ip::tcp::socket> stream_{loop_, *tls_};
  asio::streambuf head_;
};

TEST_CASE("a server with TLS ends while clients greet, wait, read and stay silent") {
  for (const bool loop_goes_on : {true, false}) {
    CAPTURE(loop_goes_on);
    std::vector<std::unique_ptr<TlsClient>> clients;
    asio::io_context loop{1};
    Site site{HostNames({}), false, without_certificate()};
    transport::ClientIds ids;
    HttpListener listener;
    HttpOptions options;
    options.connections = std::make_shared<transport::ConnectionCount>(transport::ConnectionCount::Limits{});
    options.http_connections = options.connections;
    options.welcomes = [](const transport::Credentials& /*credentials*/) { return true; };
    options.requests_per_second = [] { return std::size_t{1000}; };
    auto server = make_http_transport(loop, {"", "127.0.0.1", 0}, options, site, ids, listener);
    const std::string uri = server->endpoint();
    const auto port = static_cast<std::uint16_t>(std::stoul(uri.substr(uri.rfind(':') + 1)));

    std::size_t done = 0;
    std::thread other([&] {
      const auto next = [&]() -> TlsClient& {
        return *clients.emplace_back(std::make_unique<TlsClient>(port));
      };
      (void)next();
      next().greet();
      TlsClient& waits = next();
      waits.greet();
      waits.ask("/api/resource.status");
      TlsClient& reads = next();
      reads.greet();
      reads.ask("/api/resource.get");
      reads.read_head();
      TlsClient& served = next();
      served.greet();
      served.ask("/");
      served.read_head();
      asio::post(loop, [&] { ++done; });
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (done == 0 || listener.messages < 2) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.run_one_for(std::chrono::milliseconds(100));
    }
    other.join();
    // Work that the loop has not done yet may refer to the server.
    server.reset();
    if (loop_goes_on) loop.run_for(std::chrono::milliseconds(100));
  }
}

}  // namespace
}  // namespace resourced::daemon::http
