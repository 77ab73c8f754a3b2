// Endpoints that are accepted, endpoints that are refused because they are reachable from the network, and
// the HTTP status of a topic's error.
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "daemon/http/response.hpp"
#include "daemon/settings.hpp"

namespace resourced::daemon {
namespace {

std::vector<std::string> uris(const std::vector<proto::Endpoint>& endpoints) {
  std::vector<std::string> uris;
  for (const proto::Endpoint& endpoint : endpoints) uris.push_back(endpoint.uri());
  return uris;
}

int refusal(const std::string& uri, const config::Bus& bus = {}) {
  Options options;
  options.listen = {uri};
  try {
    (void)endpoints(options, bus);
  } catch (const Error& error) {
    CHECK(std::string_view(error.what()).find(uri) != std::string_view::npos);
    return error.errnum();
  }
  return 0;
}

TEST_CASE("the command line comes before the configuration, and that before the default") {
  Options options;
  config::Bus bus;
  CHECK(endpoints(options, bus).size() == 2);
  bus.listen = {"ipc:///tmp/a"};
  CHECK(uris(endpoints(options, bus)) == bus.listen);
  options.listen = {"ipc:///tmp/b", "local:///tmp/c"};
  CHECK(uris(endpoints(options, bus)) == options.listen);
}

TEST_CASE("tcp beyond loopback takes CURVE, or the site's word") {
  for (const char* uri : {"tcp://127.0.0.1:5000", "tcp://127.9.9.9:0", "tcp://[::1]:5000",
                          "tcp://localhost:5000", "ipc:///tmp/bus", "local:///tmp/local"}) {
    CAPTURE(uri);
    CHECK(refusal(uri) == 0);
  }
  config::Bus curve;
  curve.curve_key_file = "/etc/resourced/server.key";
  config::Bus insecure;
  insecure.insecure = true;
  for (const char* uri : {"tcp://*:5000", "tcp://0.0.0.0:5000", "tcp://[::]:5000", "tcp://10.0.0.1:5000",
                          "tcp://[fe80::1]:5000", "tcp://head1:5000", "tcp://localhost.example.org:5000",
                          "tcp://[::ffff:10.0.0.1]:5000"}) {
    CAPTURE(uri);
    CHECK(refusal(uri) == EACCES);
    CHECK(refusal(uri, curve) == 0);
    CHECK(refusal(uri, insecure) == 0);
  }
}

TEST_CASE("a daemon of a cluster tells clients a URI that they can use") {
  const auto advertised = [](const std::string& listen, const std::string& advertise) {
    Options options;
    options.listen = {listen};
    config::Config config;
    config.bus.insecure = true;
    config.cluster.advertise = advertise;
    try {
      return advertised_uri(options, config);
    } catch (const Error& error) {
      CHECK(error.errnum() == EINVAL);
      return std::string(error.what());
    }
  };
  CHECK(advertised("tcp://mgmt1:7481", "") == "tcp://mgmt1:7481");
  CHECK(advertised("ipc:///run/bus", "") == "ipc:///run/bus");
  CHECK(advertised("tcp://*:7481", "tcp://mgmt1:7481") == "tcp://mgmt1:7481");
  for (const char* listen : {"tcp://*:7481", "tcp://0.0.0.0:7481", "tcp://[::]:7481", "tcp://mgmt1:*"}) {
    CAPTURE(listen);
    CHECK(advertised(listen, "").find("cluster.advertise: clients cannot connect to ") != std::string::npos);
  }
  CHECK(advertised("tcp://mgmt1:7481", "mgmt1").find("cluster.advertise: ") != std::string::npos);
}

TEST_CASE("http: an error that may pass is 503, and no fault of the daemon") {
  constexpr unsigned unavailable = 503;
  for (const int errnum : {EAGAIN, EBUSY, ECANCELED, EHOSTUNREACH}) {
    CAPTURE(errnum);
    CHECK(http::status_of(errnum) == unavailable);
  }
}

}  // namespace
}  // namespace resourced::daemon
