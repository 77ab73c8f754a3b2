#include "bench/load/replicas.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/timing.hpp"
#include "config/cluster.hpp"
#include "harness/daemon.hpp"

namespace resourced::bench {

namespace asio = boost::asio;
namespace protocol = ::resourced::cluster;
using asio::ip::tcp;
using boost::system::error_code;

// The slow link

namespace {

/// One connection through the slow link. Its handlers keep it alive.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(tcp::socket client, std::chrono::microseconds delay)
      : client_(std::move(client)),
        server_(client_.get_executor()),
        timer_(client_.get_executor()),
        delay_(delay) {}

  void begin(std::uint16_t to) {
    error_code error;
    server_.connect({asio::ip::address_v4::loopback(), to}, error);
    if (error) return;
    client_.set_option(tcp::no_delay(true));
    server_.set_option(tcp::no_delay(true));
    read_request();
    read_answer();
  }

 private:
  using Piece = std::pair<Clock::time_point, std::string>;

  void read_request() {
    client_.async_read_some(asio::buffer(request_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (error) return self->close();
                              asio::async_write(self->server_, asio::buffer(self->request_, size),
                                                [self](const error_code& failure, std::size_t) {
                                                  failure ? self->close() : self->read_request();
                                                });
                            });
  }

  void read_answer() {
    server_.async_read_some(
        asio::buffer(answer_), [self = shared_from_this()](const error_code& error, std::size_t size) {
          if (error) return self->close();
          self->pieces_.emplace_back(Clock::now() + self->delay_, std::string(self->answer_.data(), size));
          if (self->pieces_.size() == 1) self->hold_back();
          self->read_answer();
        });
  }

  void hold_back() {
    timer_.expires_at(pieces_.front().first);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (error) return;
      asio::async_write(self->client_, asio::buffer(self->pieces_.front().second),
                        [self](const error_code& failure, std::size_t) {
                          if (failure) return self->close();
                          self->pieces_.pop_front();
                          if (!self->pieces_.empty()) self->hold_back();
                        });
    });
  }

  void close() {
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    timer_.cancel();
  }

  tcp::socket client_;
  tcp::socket server_;
  asio::steady_timer timer_;
  std::chrono::microseconds delay_;
  std::array<char, 65536> request_{};
  std::array<char, 65536> answer_{};
  std::deque<Piece> pieces_;
};

}  // namespace

struct SlowLink::State {
  State(asio::io_context& loop, std::uint16_t target, double seconds)
      : acceptor(loop, {asio::ip::address_v4::loopback(), 0}),
        to(target),
        delay(std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6))) {}

  void accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket client) {
      if (error) return;
      std::make_shared<Relay>(std::move(client), delay)->begin(to);
      accept();
    });
  }

  tcp::acceptor acceptor;
  std::uint16_t to;
  std::chrono::microseconds delay;
};

SlowLink::SlowLink(std::uint16_t to, double seconds) : state_(std::make_unique<State>(loop_, to, seconds)) {
  state_->accept();
  thread_ = std::thread([this] { loop_.run(); });
}

SlowLink::~SlowLink() {
  loop_.stop();
  thread_.join();
}

std::string SlowLink::url() const {
  return fmt::format("http://127.0.0.1:{}", state_->acceptor.local_endpoint().port());
}

// Daemons

namespace {

constexpr double patience = 60;

std::optional<std::uint64_t> sequence_of(const std::string& uri) {
  BusClient client(uri);
  client.send("resource.status");
  const BusClient::Answer answer = client.receive();
  if (answer.errnum != 0) return std::nullopt;
  const auto status = nlohmann::json::parse(answer.payload);
  if (!status.contains("sequence")) return std::nullopt;
  return status.at("sequence").get<std::uint64_t>();
}

}  // namespace

Member::Member(const Bench& bench, const std::string& name, const std::string& etcd, std::uint64_t size)
    : dir_(bench.directory), uri_("ipc://" + (dir_ / "bus").string()) {
  dir_.write("resourced.toml",
             fmt::format("{}[cluster]\netcd = [\"{}\"]\nname = \"{}\"\nlease-ttl = \"2s\"\n",
                         equal_nodes(size), etcd, name));
  start();
}

void Member::start() {
  process_ = std::make_unique<e2e::Process>(
      e2e::resourced_command({"--config", (dir_ / "resourced.toml").string(), "--state",
                              (dir_ / "state").string(), "--listen", uri_}),
      e2e::ProcessOptions{.error_file = dir_ / "log"});
}

void Member::until_leading() { (void)process_->expect_line(); }

double Member::until_following(std::uint64_t sequence) {
  const auto begun = Clock::now();
  while (seconds_since(begun) < patience) {
    if (const auto has = sequence_of(uri_); has && *has >= sequence) return seconds_since(begun);
  }
  throw std::runtime_error("the standby does not follow: " + test::read_file(dir_ / "log"));
}

void Member::stop() {
  process_->signal(SIGTERM);
  (void)process_->wait();
}

double Member::memory() const {
  std::ifstream status(fmt::format("/proc/{}/status", process_->pid()));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) * 1024;
  }
  throw std::runtime_error("VmRSS is not known");
}

double seconds_until_changed(const std::string& uri) {
  const auto begun = Clock::now();
  while (seconds_since(begun) < patience) {
    BusClient client(uri);
    client.send("resource.property", R"({"op":"add","name":"measured","targets":"0"})");
    if (client.receive().errnum == 0) return seconds_since(begun);
  }
  throw std::runtime_error("no daemon leads at " + uri);
}

std::uint64_t last_event(const std::string& uri) {
  BusClient client(uri);
  return nlohmann::json::parse(client.call("resource.cluster").payload).at("head").get<std::uint64_t>();
}

// The bare transaction

namespace {

config::Cluster settings_of(const std::string& etcd) {
  config::Cluster settings;
  settings.etcd = {etcd};
  settings.prefix = "/bare/";
  return settings;
}

}  // namespace

BareCommits::BareCommits(const std::string& etcd) : client_(loop_, settings_of(etcd)) {
  leader_ = carry_out({{}, {protocol::Put{"leader", "bare"}}}).revision;
  head_ = carry_out({{}, {protocol::Put{"head", "0"}}}).revision;
}

protocol::TransactionDone BareCommits::carry_out(protocol::Transaction work) {
  std::optional<protocol::Outcome> outcome;
  client_.send(std::move(work), [&](const protocol::Outcome& answer) {
    outcome = answer;
    loop_.stop();
  });
  loop_.restart();
  loop_.run();
  const auto* done = std::get_if<protocol::TransactionDone>(&*outcome);
  if (done == nullptr || !done->held) throw std::runtime_error("etcd has not carried out a bare transaction");
  return *done;
}

void BareCommits::once() {
  using Field = protocol::Guard::Field;
  const std::string record = fmt::format(
      R"({{"first":{0},"epoch":{1},"parts":0}}
{{"sequence":{0},"timestamp":1764000000.123456,"name":"drain","text":"{{\"timestamp\":1764000000.123456,\"name\":\"drain\",\"context\":{{\"idset\":\"1\",\"nodelist\":\"node1\",\"overwrite\":0,\"reason\":\"measured\"}}}}","hosts":"node1","by":{{"uid":0}}}}
)",
      ++sequence_, leader_);
  head_ = carry_out({{{"leader", Field::created, leader_}, {"head", Field::modified, head_}},
                     {protocol::Put{fmt::format("log/{:020}", sequence_), record},
                      protocol::Put{"head", fmt::format("{}", sequence_)}},
                     {protocol::Read{"leader"}, protocol::Read{"head"}}})
              .revision;
}

}  // namespace resourced::bench
