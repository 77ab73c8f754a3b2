#include "daemon/transport/zmq_peers.hpp"

#include <doctest/doctest.h>

namespace resourced::daemon::transport {
namespace {

TEST_CASE("a client lives as long as its connection") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto first = peers.arrived("A", 20);
  CHECK(first.is_new);
  CHECK_FALSE(first.is_gone);
  CHECK_FALSE(first.replaced);
  const auto second = peers.arrived("A", 20);
  CHECK_FALSE(second.is_new);
  CHECK(second.client == first.client);
  CHECK(*peers.identity(first.client) == "A");

  CHECK(peers.disconnected(20) == first.client);
  CHECK(peers.identity(first.client) == nullptr);
  CHECK_FALSE(peers.disconnected(20));
}

TEST_CASE("a descriptor that is used again is another client") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto old = peers.arrived("A", 20);
  CHECK(peers.disconnected(20) == old.client);
  peers.accepted(20);
  const auto fresh = peers.arrived("B", 20);
  CHECK(fresh.is_new);
  CHECK(fresh.client != old.client);
  CHECK_FALSE(fresh.is_gone);
  CHECK(peers.disconnected(20) == fresh.client);
}

TEST_CASE("a message that is read after its connection ended does not keep the client") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  CHECK_FALSE(peers.disconnected(20));
  const auto late = peers.arrived("A", 20);
  CHECK(late.is_new);
  CHECK(late.is_gone);
}

TEST_CASE("a late message never takes a live client's place for good") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  CHECK_FALSE(peers.disconnected(20));
  peers.accepted(20);
  // The message of A was in transit when its descriptor was reused for B, which has sent nothing yet.
  const auto late = peers.arrived("A", 20);
  CHECK(late.is_new);
  const auto live = peers.arrived("B", 20);
  CHECK(live.replaced == late.client);
  CHECK_FALSE(live.is_gone);
  CHECK(peers.disconnected(20) == live.client);
}

TEST_CASE("an identity that connects anew is a new client") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto old = peers.arrived("scheduler", 20);
  peers.accepted(21);
  const auto fresh = peers.arrived("scheduler", 21);
  CHECK(fresh.replaced == old.client);
  CHECK(fresh.is_new);
  CHECK_FALSE(peers.disconnected(20));
  CHECK(peers.identity(fresh.client) != nullptr);
}

TEST_CASE("a forgotten client is not reported when its connection ends") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto client = peers.arrived("A", 20).client;
  peers.forget(client);
  CHECK(peers.identity(client) == nullptr);
  CHECK_FALSE(peers.disconnected(20));
}

TEST_CASE("nothing is heard of a client that was dropped, nor of its end") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto client = peers.arrived("A", 20).client;
  CHECK(peers.drop(client) == 20);
  CHECK(peers.identity(client) == nullptr);
  // Messages of the dropped client's connection are unwanted, whatever their identity.
  CHECK(peers.arrived("A", 20).is_unwanted);
  CHECK(peers.arrived("B", 20).is_unwanted);
  CHECK_FALSE(peers.disconnected(20));
  CHECK(peers.arrived("A", 20).is_unwanted);
  CHECK_FALSE(peers.drop(client));

  // The next connection with this descriptor is another client.
  peers.accepted(20);
  const auto next = peers.arrived("A", 20);
  CHECK_FALSE(next.is_unwanted);
  CHECK(next.is_new);
  CHECK(next.client != client);
  CHECK(peers.disconnected(20) == next.client);
}

TEST_CASE("a client that is dropped takes no other connection along") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  const auto old = peers.arrived("A", 20);
  CHECK(peers.disconnected(20) == old.client);
  CHECK_FALSE(peers.drop(old.client));

  // This message is read after the end of its connection, so there is no connection to end.
  const auto late = peers.arrived("A", 20);
  CHECK(late.is_gone);
  CHECK_FALSE(peers.drop(late.client));
  peers.accepted(20);
  const auto live = peers.arrived("B", 20);
  CHECK_FALSE(live.is_unwanted);
  CHECK_FALSE(peers.drop(late.client));
  CHECK_FALSE(peers.arrived("B", 20).is_new);
}

TEST_CASE("nothing is heard of a connection that was refused") {
  ClientIds ids;
  ZmqPeers peers(ids);
  peers.accepted(20);
  peers.refuse(20);
  CHECK(peers.arrived("A", 20).is_unwanted);
  CHECK_FALSE(peers.disconnected(20));
  CHECK(peers.arrived("A", 20).is_unwanted);
  peers.refuse(21);
  peers.accepted(21);
  CHECK(peers.arrived("A", 21).is_new);
}

TEST_CASE("a message of a descriptor that was never accepted is thrown away") {
  ClientIds ids;
  ZmqPeers peers(ids);
  CHECK(peers.arrived("A", 20).is_unwanted);
  CHECK(peers.arrived("A", -1).is_unwanted);
}

}  // namespace
}  // namespace resourced::daemon::transport
