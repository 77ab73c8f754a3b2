// The client of etcd with the real etcd: endpoints that die, TLS with client certificates, users and
// passwords, and a server that is not etcd.
#include "daemon/log/etcd/etcd_client.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <variant>

#include <boost/asio/buffers_iterator.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "certificates.hpp"
#include "client_of_etcd.hpp"
#include "core/error.hpp"
#include "only_thorough.hpp"
#include "shared_etcd.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using namespace ::resourced::cluster;
using test::Client;
using Etcd = test::SharedEtcd;
using OwnEtcd = test::Etcd;
using test::FakeServer;
using test::settings_of;
using test::TempDir;

// A server that lets any user log in and answers every other request with success, one request for each
// connection. It counts the logins.
class LoginServer {
 public:
  LoginServer() : acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), 0}) {
    accept();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~LoginServer() {
    loop_.stop();
    thread_.join();
  }
  LoginServer(const LoginServer&) = delete;
  LoginServer& operator=(const LoginServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  std::atomic<int> logins = 0;

 private:
  void accept() {
    acceptor_.async_accept(
        [this](const boost::system::error_code& error, boost::asio::ip::tcp::socket socket) {
          if (error) return;
          boost::asio::streambuf request;
          boost::system::error_code ignored;
          boost::asio::read_until(socket, request, "\r\n\r\n", ignored);
          const std::string head(boost::asio::buffers_begin(request.data()),
                                 boost::asio::buffers_end(request.data()));
          const bool is_login = head.find("/v3/auth/authenticate") != std::string::npos;
          if (is_login) ++logins;
          const std::string body = is_login ? R"({"token":"t"})" : R"({"header":{"revision":"1"}})";
          const std::string answer =
              "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body;
          boost::asio::write(socket, boost::asio::buffer(answer), ignored);
          accept();
        });
  }

  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace

TEST_SUITE_BEGIN("client of etcd");

TEST_CASE("requests that come together log in once") {
  LoginServer server;
  const TempDir dir;
  config::Cluster settings = settings_of({server.url()});
  settings.user = "u";
  settings.password_file = dir.write("password", "p");
  REQUIRE(chmod(settings.password_file.c_str(), 0600) == 0);
  boost::asio::io_context loop{1};
  EtcdClient client(loop, settings);
  std::size_t answered = 0;
  constexpr std::size_t count = 5;
  for (std::size_t i = 0; i < count; ++i) {
    client.send(Compact{1}, [&](const Outcome& outcome) {
      CHECK(std::holds_alternative<Done>(outcome));
      if (++answered == count) loop.stop();
    });
  }
  loop.run_for(std::chrono::seconds(60));
  CHECK(answered == count);
  CHECK(server.logins == 1);
}

TEST_CASE("transactions are guarded, and leases delete their keys") {
  const Etcd etcd;
  Client client(settings_of(etcd.urls()));
  const TransactionDone first = client.put("1");
  CHECK(first.held);
  REQUIRE(first.found.at(0).size() == 1);
  CHECK(first.found[0][0].value == "1");
  CHECK(first.found[0][0].modified == first.revision);
  const auto guarded = [&](Revision revision) {
    return std::get<TransactionDone>(client.ask(Transaction{
        {{"k", Guard::Field::modified, revision}}, {Put{"k", std::string("\0\xff", 2)}}, {Read{"k"}}}));
  };
  CHECK_FALSE(guarded(first.revision + 5).held);
  CHECK(guarded(first.revision).held);
  const TransactionDone moved = guarded(first.revision);
  CHECK_FALSE(moved.held);
  CHECK(moved.found.at(0).at(0).value == std::string("\0\xff", 2));

  const auto lease = std::get<LeaseDone>(client.ask(Grant{Seconds(30)}));
  CHECK(lease.ttl == Seconds(30));
  CHECK(std::get<TransactionDone>(client.ask(Transaction{{}, {Put{"leased", "x", lease.lease}}, {}})).held);
  CHECK(std::get<LeaseDone>(client.ask(KeepAlive{lease.lease})).ttl == Seconds(30));
  CHECK(std::holds_alternative<Done>(client.ask(Revoke{lease.lease})));
  CHECK(std::get<LeaseDone>(client.ask(KeepAlive{lease.lease})).ttl == Seconds(0));
  CHECK(std::get<TransactionDone>(client.ask(Transaction{{}, {Read{"leased"}}, {}})).found.at(0).empty());
  const Outcome refused = client.ask(Transaction{{}, {Put{"leased", "x", lease.lease}}, {}});
  CHECK(std::get<Refused>(refused).lease_has_ended);
}

TEST_CASE("ranges are read in pages, deleted, and compacted") {
  const Etcd etcd;
  Client client(settings_of(etcd.urls()));
  for (const std::string key : {"log/1", "log/2", "log/3", "other"})
    (void)client.ask(Transaction{{}, {Put{key, std::string(100000, key.back())}}, {}});
  const auto page = std::get<TransactionDone>(client.ask(Transaction{{}, {Read{"log/2", "log0", 8}}, {}}));
  REQUIRE(page.found.at(0).size() == 2);
  CHECK(page.found[0][1].key == "log/3");
  CHECK(page.found[0][1].value == std::string(100000, '3'));
  const auto gone = std::get<TransactionDone>(client.ask(Transaction{{}, {Delete{"log/", "log/3"}}, {}}));
  CHECK(std::holds_alternative<Done>(client.ask(Compact{gone.revision})));
  CHECK(std::holds_alternative<Refused>(client.ask(Compact{gone.revision})));
  const auto rest = std::get<TransactionDone>(client.ask(Transaction{{}, {Read{"log/", "log0", 8}}, {}}));
  CHECK(rest.found.at(0).size() == 1);
}

TEST_CASE("endpoints are tried in turn, whichever member is killed" * test::only_thorough()) {
  Etcd etcd({.members = 3});
  Client client(settings_of(etcd.urls()));
  for (std::size_t member = 0; member < 3; ++member) {
    etcd.kill(member);
    CHECK(client.put(std::to_string(member)).held);
    etcd.start(member);
  }
}

TEST_CASE("TLS needs a certificate of the authority, on both sides") {
  const TempDir dir;
  test::make_certificates(dir);
  const OwnEtcd etcd({.tls = dir / "."});
  config::Cluster settings = settings_of(etcd.urls());
  settings.ca_file = dir / "ca.crt";
  settings.certificate = dir / "client.crt";
  settings.key = dir / "client.key";
  CHECK(Client(settings).put("x").held);
  CHECK(std::holds_alternative<Changed>(Client(settings).ask(Watch{"k", "l", 1})));

  config::Cluster without = settings;
  without.certificate.clear();
  CHECK(std::holds_alternative<Unknown>(Client(without).ask(Transaction{{}, {Put{"k", "y"}}, {}})));
  CHECK(std::holds_alternative<Unknown>(Client(without).ask(Watch{"k", "l", 1})));
  config::Cluster untrusting = settings;
  untrusting.ca_file.clear();
  CHECK(std::holds_alternative<Unknown>(Client(untrusting).ask(Transaction{{}, {Put{"k", "y"}}, {}})));
  // The key belongs to another certificate, or others can read it.
  config::Cluster mismatched = settings;
  mismatched.key = dir / "server.key";
  CHECK_THROWS_AS(Client{mismatched}, Error);
  REQUIRE(chmod(settings.key.c_str(), 0644) == 0);
  CHECK_THROWS_AS(Client{settings}, Error);
}

TEST_CASE("a user logs in with a password, and again when the token is not valid any more") {
  OwnEtcd etcd({.election = std::chrono::milliseconds(100)});
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"user", "add", "root:secret"},
           {"user", "add", "member:word"},
           {"role", "add", "member"},
           {"role", "grant-permission", "member", "readwrite", "--prefix=true", "/p/"},
           {"user", "grant-role", "root", "root"},
           {"user", "grant-role", "member", "member"},
           {"auth", "enable"}})
    etcd.control(command);
  const TempDir dir;
  dir.write("password", "word\n");
  dir.write("wrong", "guess\n");
  REQUIRE(chmod((dir / "password").c_str(), 0600) == 0);
  REQUIRE(chmod((dir / "wrong").c_str(), 0600) == 0);
  config::Cluster settings = settings_of(etcd.urls());
  settings.user = "member";
  settings.password_file = dir / "password";
  Client client(settings);
  CHECK(client.put("x").held);
  // A token is valid only for the process that issued it.
  etcd.kill(0);
  etcd.start(0);
  CHECK(client.put("y").held);
  CHECK(std::holds_alternative<Changed>(Client(settings).ask(Watch{"k", "l", 1})));
  CHECK(std::holds_alternative<Changed>(client.ask(Watch{"k", "l", 1})));
  etcd.kill(0);
  etcd.start(0);
  CHECK(std::holds_alternative<Changed>(client.known([] { return Watch{"k", "l", 1}; })));

  config::Cluster elsewhere = settings;
  elsewhere.prefix = "/q/";
  const Outcome denied = Client(elsewhere).ask(Transaction{{}, {Put{"k", "z"}}, {}});
  CHECK(std::get<Refused>(denied).why.find("permission denied") != std::string::npos);
  CHECK(std::holds_alternative<Refused>(Client(elsewhere).ask(Watch{"k", "l", 1})));
  config::Cluster guess = settings;
  guess.password_file = dir / "wrong";
  const Outcome wrong = Client(guess).ask(Transaction{{}, {Put{"k", "z"}}, {}});
  CHECK(std::get<Refused>(wrong).why.find("user member: ") != std::string::npos);
}

TEST_CASE("a user goes on when the authentication of etcd is disabled and enabled, and with a new password") {
  OwnEtcd etcd({.election = std::chrono::milliseconds(100)});
  test::add_user(etcd, "word");
  const TempDir dir;
  config::Cluster settings = settings_of(etcd.urls());
  settings.user = "member";
  settings.password_file = dir.write("password", "word");
  REQUIRE(chmod(settings.password_file.c_str(), 0600) == 0);
  Client before(settings);
  CHECK(before.put("before users").held);
  etcd.control({"auth", "enable"});
  CHECK(before.put("with users").held);
  Client client(settings);
  CHECK(client.put("x").held);
  etcd.control({"auth", "disable", "--user", "root:secret"});
  CHECK(before.put("without users").held);
  CHECK(client.put("y").held);
  CHECK(std::holds_alternative<Changed>(client.ask(Watch{"k", "l", 1})));
  etcd.control({"auth", "enable"});
  CHECK(client.put("z").held);
  CHECK(std::holds_alternative<Changed>(client.ask(Watch{"k", "l", 1})));

  etcd.control({"role", "grant-permission", "member", "readwrite", "/p/", "--user", "root:secret"});
  test::change_password(etcd, "changed");
  const Outcome old = client.ask(Transaction{{}, {Put{"k", "w"}}, {}});
  CHECK(std::get<Refused>(old).why.find("user member: ") != std::string::npos);
  dir.write("password", "changed");
  REQUIRE(chmod(settings.password_file.c_str(), 0600) == 0);
  client.etcd().set_credentials(read_credentials(settings));
  CHECK(client.put("w").held);

  config::Cluster nobody = settings;
  nobody.user = nobody.password_file = "";
  const Outcome refused = Client(nobody).ask(Transaction{{}, {Put{"k", "v"}}, {}});
  CHECK(std::get<Refused>(refused).why.find("etcd has users now; set user and password-file in [cluster]") !=
        std::string::npos);
}

TEST_CASE("a server that is not etcd gives no outcome, and its memory is bounded") {
  for (const std::string answer : {"", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
                                   "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
                                   "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
                                   "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nhtml"}) {
    CAPTURE(answer);
    const FakeServer server(answer);
    Client client(settings_of({server.url()}));
    CHECK(std::holds_alternative<Unknown>(client.ask(Transaction{{}, {Read{"k"}}, {}})));
  }
  // After a server that is not etcd, the client uses the next endpoint.
  const Etcd etcd;
  const FakeServer server("nonsense\r\n\r\n");
  std::vector<std::string> urls{server.url()};
  urls.push_back(etcd.urls().at(0));
  CHECK(Client(settings_of(urls)).put("x").held);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
