// Endpoints of etcd that cannot be used: a name whose look-up takes too long, and a member that was removed
// and has returned as an etcd of its own.
#include <chrono>
#include <string_view>
#include <thread>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <netdb.h>

#include "client_of_etcd.hpp"
#include "shared_etcd.hpp"

// Replaces getaddrinfo() of the C library in this program: for one name no server answers.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* host, const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** addresses) noexcept(false) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host != nullptr && std::string_view(host) == "dead.invalid")
    std::this_thread::sleep_for(std::chrono::seconds(20));
  return real(host, service, hints, addresses);
}

namespace resourced::daemon::log::etcd {
namespace {

using namespace ::resourced::cluster;
using test::Client;
using test::settings_of;

}  // namespace

TEST_SUITE_BEGIN("client of etcd");

TEST_CASE("a name that is not found in time delays neither the other endpoints nor the end") {
  const test::SharedEtcd etcd;
  const std::string url = etcd.urls().at(0);
  const auto begin = std::chrono::steady_clock::now();
  {
    Client client(settings_of({"http://dead.invalid:2379", "http://localhost" + url.substr(url.rfind(':'))}));
    for (int count = 0; count < 3; ++count) CHECK(client.put("x").held);
    // Later requests use the endpoint that answers.
    CHECK(std::holds_alternative<Changed>(client.known([] { return Watch{"k", "l", 1}; })));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("an endpoint of another etcd is passed over, at a start and later") {
  test::Etcd etcd({.members = 3, .election = std::chrono::milliseconds(500)});
  const test::Etcd other({.election = std::chrono::milliseconds(100)});
  std::vector<std::string> urls = etcd.urls();
  urls.insert(urls.begin(), other.urls().at(0));
  Client client(settings_of(urls));
  CHECK(client.put("1").held);
  CHECK(std::holds_alternative<Changed>(client.known([] { return Watch{"k", "l", 1}; })));
  CHECK(other.control({"get", "--prefix", ""}).empty());
  // The client uses member 0.
  etcd.kill(0);
  const test::TempDir dir;
  const e2e::Process alone({test::etcd_program, "--data-dir", (dir / "e").string(), "--listen-client-urls",
                            etcd.urls().at(0), "--advertise-client-urls", etcd.urls().at(0),
                            "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error"},
                           {.error_file = dir / "log"});
  const auto found = [](const std::string& url) {
    Client one(settings_of({url}));
    const Outcome outcome = one.known([] { return Transaction{{}, {Read{"k"}}, {}}; });
    const auto entries = std::get<TransactionDone>(outcome).found.at(0);
    return entries.empty() ? "" : entries[0].value;
  };
  CHECK(found(etcd.urls().at(0)) == "");
  CHECK(client.put("2").held);
  CHECK(std::holds_alternative<Changed>(client.known([] { return Watch{"k", "l", 1}; })));
  CHECK(found(etcd.urls().at(1)) == "2");
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
