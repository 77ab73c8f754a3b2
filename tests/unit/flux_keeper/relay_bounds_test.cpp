// Bounds of what the keeper stores for the next service, and which requests count as one client's.
#include <cerrno>
#include <string>

#include <doctest/doctest.h>

#include "proto/local_frame.hpp"
#include "proto/message.hpp"
#include "relay_ends.hpp"

using namespace resourced;
using namespace resourced::relay_test;

namespace {

TEST_CASE("only so many requests wait for the next service") {
  Module module;
  module.relay.service_ended();
  constexpr std::uint32_t most = 1024;
  for (std::uint32_t tag = 1; tag <= most; ++tag) module.from_broker(request("resource.status", tag));
  CHECK(module.broker_sees().empty());
  module.from_broker(request("resource.status", most + 1));
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].matchtag == most + 1);
  CHECK(seen[0].errnum() == EHOSTUNREACH);
  module.relay.service_started();
  CHECK(module.service_sees().size() == most);
}

TEST_CASE("the bytes that wait for the next service are bounded, and are free again once it has them") {
  Module module;
  constexpr std::size_t most = std::size_t{16} << 20U;
  const Message large = request("resource.status", 1, "a", 0, std::string(most - 1024, 'x'));
  for (int i = 0; i < 2; ++i) {
    module.relay.service_ended();
    CHECK(module.broker_sees().size() == static_cast<std::size_t>(i));
    module.from_broker(large);
    CHECK(module.broker_sees().empty());
    module.from_broker(request("resource.status", 2, "a", 0, std::string(1024, 'x')));
    auto refused = module.broker_sees();
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].matchtag == 2);
    CHECK(refused[0].errnum() == EHOSTUNREACH);
    module.from_broker(request("resource.status", 2, "a"));
    module.from_broker(request("resource.disconnect", 0, "a", flag::noresponse));
    module.from_broker(large);
    CHECK(module.broker_sees().empty());
    module.relay.service_started();
    CHECK(module.service_sees().size() == 1);
  }
}

TEST_CASE("requests of guests wait up to a number and a size of their own") {
  Module module;
  module.relay.service_ended();
  constexpr std::size_t most_bytes = 65536;
  module.from_broker(of_guest(request("resource.status", 1, "a", 0, std::string(most_bytes, 'x'))));
  auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].errnum() == EHOSTUNREACH);
  constexpr std::uint32_t most = 256;
  for (std::uint32_t tag = 1; tag <= most; ++tag) {
    module.from_broker(of_guest(request("resource.status", tag, "a", tag % 2 == 0 ? flag::streaming : 0)));
  }
  CHECK(module.broker_sees().empty());
  module.from_broker(of_guest(request("resource.status", most + 1, "b")));
  refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].errnum() == EHOSTUNREACH);
  module.from_broker(request("resource.status", 1, "owner", 0, std::string(most_bytes, 'x')));
  module.from_broker(of_guest(request("resource.disconnect", 0, "a", flag::noresponse)));
  module.from_broker(of_guest(request("resource.status", most + 1, "b")));
  CHECK(module.broker_sees().empty());
  CHECK(module.relay.open() == 2);
}

TEST_CASE("a request without its payload is refused, and is not for the service") {
  Module module;
  const Message cut = of_guest(request("resource.status", 7, "client"));
  module.relay.refuse_cut(proto::encode_local_frame(cut));
  const auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].errnum() == EMSGSIZE);
  CHECK(refused[0].text() == "resource.status: a message of more than 67108864 bytes");
  CHECK(refused[0].routes == cut.routes);
  CHECK(refused[0].matchtag == 7);
  CHECK(refused[0].userid == guest);
  module.relay.refuse_cut(
      proto::encode_local_frame(request("resource.status", 0, "client", flag::noresponse)));
  CHECK(module.broker_sees().empty());
  CHECK(module.service_sees().empty());
  CHECK(module.relay.open() == 0);
}

TEST_CASE("an origin has up to 1024 streams") {
  Module module;
  constexpr std::uint32_t most = 1024;
  const auto journal = [](std::uint32_t tag, const std::string& client = "cli") {
    return request("resource.journal", tag, client, flag::streaming);
  };
  for (std::uint32_t tag = 1; tag <= most; ++tag) module.from_broker(journal(tag));
  CHECK(module.broker_sees().empty());
  (void)module.service_sees();
  module.from_broker(journal(most + 1));
  const auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].matchtag == most + 1);
  CHECK(refused[0].errnum() == EBUSY);
  CHECK(module.service_sees().empty());
  // Another origin has its own limit, and the end of a stream makes room.
  module.from_broker(journal(1, "other"));
  module.from_service(proto::make_error(journal(7), ENODATA));
  module.from_broker(journal(most + 1));
  CHECK(module.broker_sees().size() == 1);
  CHECK(module.service_sees().size() == 2);
  CHECK(module.relay.open() == most + 1);
}

TEST_CASE("another user who names the same origin has matchtags of its own") {
  Module module;
  const Message journal = request("resource.journal", 3, "cli", flag::streaming);
  const Message forged = of_guest(request("resource.status", 3, "cli"));
  module.from_broker(forged);
  module.from_broker(journal);
  CHECK(module.service_sees().size() == 2);
  module.from_service(proto::make_response(forged));
  module.from_service(proto::make_response(journal), "5");
  CHECK(module.broker_sees().size() == 2);
  module.restart();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 1);
  CHECK(handed[0].mark == "5");
}

TEST_CASE("a matchtag that is in use is refused, and the request that uses it stays") {
  Module module;
  const Message journal = request("resource.journal", 3, "cli", flag::streaming);
  module.from_broker(journal);
  module.from_service(proto::make_response(journal), "5");
  (void)module.broker_sees();
  (void)module.service_sees();
  module.from_broker(request("resource.status", 3, "cli"));
  const auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].topic == "resource.status");
  CHECK(refused[0].errnum() == EPROTO);
  CHECK(refused[0].text() == "matchtag is in use");
  CHECK(module.service_sees().empty());
  module.restart();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 1);
  CHECK(handed[0].mark == "5");
}

TEST_CASE("a cancellation is not stored for a request that no other service gets, nor if it is large") {
  Module module;
  const std::string large = R"({"matchtag":3,"x":")" + std::string(65536, 'x') + R"("})";
  module.relay.service_ended();
  module.from_broker(of_guest(request("resource.status", 3, "cli")));
  module.from_broker(of_guest(request("resource.status-cancel", 0, "cli", flag::noresponse, large)));
  module.relay.service_started();
  CHECK(module.service_sees().size() == 1);
}

}  // namespace
