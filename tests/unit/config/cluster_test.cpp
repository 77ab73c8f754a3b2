// [cluster]: endpoints of etcd, and keys that belong together.
#include "config/cluster.hpp"

#include <string>

#include <doctest/doctest.h>

#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;

TEST_CASE("an endpoint of etcd has a scheme, a host and a port") {
  CHECK(parse_etcd_endpoint("http://a:1") == EtcdEndpoint{false, "a", 1});
  CHECK(parse_etcd_endpoint("https://a.b-c:65535/") == EtcdEndpoint{true, "a.b-c", 65535});
  CHECK(parse_etcd_endpoint("http://a") == EtcdEndpoint{false, "a", 2379});
  CHECK(parse_etcd_endpoint("https://[::1]:7") == EtcdEndpoint{true, "::1", 7});
  CHECK(parse_etcd_endpoint("https://[::1]:7").authority() == "[::1]:7");
  CHECK(parse_etcd_endpoint("http://10.0.0.1").authority() == "10.0.0.1:2379");
  for (const char* text : {"", "a:1", "ftp://a:1", "http://", "http://:1", "http://a:", "http://a:0",
                           "http://a:65536", "http://a:1x", "http://a/b", "http://a:1/b", "http://[::1",
                           "http://[::1]x", "http://a b:1", "http://u@a:1"}) {
    CAPTURE(text);
    CHECK(failure_of([&] { (void)parse_etcd_endpoint(text); }).errnum == EINVAL);
  }
}

TEST_CASE("without endpoints a daemon is on its own") {
  CHECK_FALSE(load_text("").cluster.is_set());
  CHECK_FALSE(load_text("[cluster]\nname = \"a\"\n").cluster.is_set());
  const Config config = load_text("[cluster]\netcd = [\"http://a\"]\nprefix = \"/p\"\n");
  CHECK(config.cluster.is_set());
  CHECK(config.cluster.prefix == "/p/");
  CHECK(config.cluster.lease_ttl == Seconds(3));
}

TEST_CASE("values of a cluster that cannot be used are refused by file, line and key") {
  const auto refusal = [](const std::string& more) {
    return failure_of([&] { (void)load_text("[cluster]\netcd = [\"http://a\"]\n" + more); }).text;
  };
  CHECK(refusal("") == "");
  const auto is_refused = [&](const std::string& more, const std::string& place) {
    CAPTURE(more);
    CHECK(refusal(more).find(place) != std::string::npos);
  };
  is_refused("name = \"a/b\"\n", ":3: cluster.name: \"a/b\" has a slash");
  is_refused("lease-ttl = \"1s\"\n", ":3: cluster.lease-ttl: ");
  is_refused("user = \"u\"\n", "cluster.user: user and password-file must be set together");
  is_refused("password-file = \"/p\"\n", "cluster.password-file: user and password-file");
  is_refused("key = \"/k\"\n", "cluster.key: certificate and key must be set together");
  is_refused("certificate = \"/c\"\n", "cluster.certificate: certificate and key must be set together");
  CHECK(failure_of([] {
          (void)load_text("[cluster]\netcd = [\"a\"]\n");
        }).text.find(":2: cluster.etcd: \"a\" ") != std::string::npos);
  CHECK(failure_of([] {
          (void)load_text("[cluster]\netcd = [\"http://a\", \"http://a\"]\n");
        }).text.find("is there twice") != std::string::npos);
}
