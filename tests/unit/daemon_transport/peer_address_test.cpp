#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "daemon/transport/zmq_peers.hpp"

namespace resourced::daemon::transport {
namespace {

TEST_CASE("what libzmq writes about the peer of an ipc connection") {
  CHECK(parse_ipc_peer("localhost:1000:100:4242") == IpcPeer{1000, 100});
  CHECK(parse_ipc_peer("localhost:0:0:1") == IpcPeer{0, 0});
  CHECK(parse_ipc_peer(":1000:100:4242") == IpcPeer{1000, 100});
  CHECK(parse_ipc_peer("localhost:4294967294:4294967294:0") == IpcPeer{4294967294, 4294967294});
}

TEST_CASE("any other text names no peer") {
  for (const std::string_view text : {"",
                                      ":",
                                      "localhost",
                                      "localhost:",
                                      "localhost:0",
                                      "localhost:0:0",
                                      "localhost:0:0:",
                                      "localhost:0:0:1:",
                                      "localhost:0:0:1:0:0:1",
                                      "localhost::0:1",
                                      "localhost:+0:0:1",
                                      "localhost:-1:0:1",
                                      "localhost: 0:0:1",
                                      "localhost:0:0:1 ",
                                      "localhost:0x0:0:1",
                                      "localhost:4294967296:0:1",
                                      "localhost:0:0:4294967296",
                                      "localhost:a:b:c",
                                      "127.0.0.1",
                                      "::1",
                                      "fe80::1:2:3"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_ipc_peer(text));
  }
}

TEST_CASE("an address of IPv4 is plain, also where a socket for both families names it") {
  CHECK(plain_address("::ffff:10.0.0.1") == "10.0.0.1");
  for (const std::string_view address :
       {"", "10.0.0.1", "::1", "::ffff:a00:1", "fe80::1%eth0", "2001:db8::1"})
    CHECK(plain_address(address) == address);
}

}  // namespace
}  // namespace resourced::daemon::transport
