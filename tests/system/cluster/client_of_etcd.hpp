// A client of etcd with a loop of its own, and a server that is not etcd.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include "config/cluster.hpp"
#include "daemon/log/etcd/etcd_client.hpp"

namespace resourced::test {

using namespace ::resourced::cluster;

inline config::Cluster settings_of(const std::vector<std::string>& urls) {
  config::Cluster settings;
  settings.etcd = urls;
  settings.prefix = "/p/";
  settings.lease_ttl = Seconds(8);
  return settings;
}

class Client {
 public:
  explicit Client(const config::Cluster& settings) : client_(loop_, settings) {}

  /// Sends a request and returns its first outcome; later ones are in `told`.
  Outcome ask(const Request& request) {
    auto outcome = std::make_shared<std::optional<Outcome>>();
    client_.send(request, [this, outcome](Outcome answer) {
      if (*outcome)
        told.push_back(std::move(answer));
      else
        *outcome = std::move(answer);
    });
    run_until([&] { return outcome->has_value(); });
    return **outcome;
  }
  /// Sends the request again until its outcome is known, as a member of a cluster does.
  template <class Make>
  Outcome known(Make make) {
    while (true) {
      Outcome outcome = ask(make());
      if (!std::holds_alternative<Unknown>(outcome)) return outcome;
    }
  }
  TransactionDone put(const std::string& value) {
    const Outcome outcome = known([&] { return Transaction{{}, {Put{"k", value}, Read{"k"}}, {}}; });
    INFO(client_.trouble());
    REQUIRE(std::holds_alternative<TransactionDone>(outcome));
    return std::get<TransactionDone>(outcome);
  }
  /// The next outcome of the last Watch, after its first one.
  Outcome next() {
    run_until([this] { return !told.empty(); });
    Outcome outcome = std::move(told.front());
    told.pop_front();
    return outcome;
  }
  template <class Kind>
  [[nodiscard]] bool has_told() const {
    return std::ranges::any_of(told, [](const Outcome& one) { return std::holds_alternative<Kind>(one); });
  }
  template <class IsDone>
  void run_until(IsDone is_done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    loop_.restart();
    while (!is_done()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      const std::size_t before = told.size();
      loop_.run_one_until(end);
      most_told = std::max(most_told, told.size() - before);
    }
  }

  [[nodiscard]] daemon::log::etcd::EtcdClient& etcd() { return client_; }

  std::deque<Outcome> told;
  /// The largest number of outcomes in one turn of the loop.
  std::size_t most_told = 0;

 private:
  boost::asio::io_context loop_{1};
  daemon::log::etcd::EtcdClient client_;
};

/// A server that answers the first request of each connection with these bytes, and closes, or repeats the
/// second bytes for ever.
class FakeServer {
 public:
  explicit FakeServer(std::string answer, std::string endless = "")
      : answer_(std::move(answer)),
        endless_(std::move(endless)),
        acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), 0}),
        thread_([this] {
          accept();
          loop_.run();
        }) {}
  ~FakeServer() {
    is_over_ = true;
    loop_.stop();
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  void accept() {
    acceptor_.async_accept(
        [this](const boost::system::error_code& error, boost::asio::ip::tcp::socket socket) {
          if (error) return;
          boost::asio::streambuf request;
          boost::system::error_code ignored;
          boost::asio::read_until(socket, request, "\r\n\r\n", ignored);
          boost::asio::write(socket, boost::asio::buffer(answer_), ignored);
          boost::system::error_code gone;
          while (!endless_.empty() && !gone && !is_over_)
            boost::asio::write(socket, boost::asio::buffer(endless_), gone);
          accept();
        });
  }

  std::string answer_;
  std::string endless_;
  std::atomic<bool> is_over_ = false;
  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace resourced::test
