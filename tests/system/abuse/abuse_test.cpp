// Clients that send malformed data, stop halfway through a handshake, never read, or claim the identity of
// another client. After each test the daemon answers as before and uses no more memory and descriptors than
// before.
#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "harness/other_user.hpp"
#include "target.hpp"
#include "thorough.hpp"
#include "wire/dealer.hpp"
#include "wire/local_client.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using namespace std::string_literals;

/// A request with an object as its payload.
Parts request(const std::string& topic, std::uint32_t matchtag, std::uint8_t flags = 0,
              const json& payload = json::object(), const Parts& routes = {}) {
  return request_parts(topic, matchtag, payload_of(payload), flags, routes);
}

std::string noise(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Bytes from a client of another protocol, or from a defective client.
std::string malformed(std::mt19937_64& random) {
  const std::string greeting = "\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"s + std::string(48, '\0');
  const std::string frame_magic = "\x12\x00\xEE\xFF"s;
  const std::array<std::string, 14> kinds{
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n"s,
      "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"s,
      "\0"s,
      greeting,
      greeting.substr(0, 40),
      greeting + "\x04\x05\x05READ"s,
      greeting + "\x04\xFF\x05READY"s,
      greeting + "\x06\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s,
      greeting + "\x04\x06\x05READY"s + noise(random, 40),
      "\xFF\0\0\0\0\0\0\0\1\x7F\3\0CURVE"s + std::string(47, '\0') + noise(random, 200),
      "\x01\0"s + noise(random, 30),
      frame_magic + "\xFF\xFF\xFF\xFF"s,
      frame_magic + "\0\0\0\x20"s + noise(random, 32),
      noise(random, 1 + random() % 2000),
  };
  return kinds.at(random() % kinds.size());
}

TEST_SUITE_BEGIN("abuse");

TEST_CASE("ten thousand malformed connections") {
  Target target;
  std::mt19937_64 random(4);
  target.survives("10000 malformed connections, seed 4", [&] {
    for (int i = 0; i < 10000; ++i) {
      const RawSocket socket(target.endpoints()[static_cast<std::size_t>(i) % 3]);
      socket.send(malformed(random));
    }
  });
}

TEST_CASE("half-open connections hold up nobody, and end in time") {
  Target target("handshake-timeout = \"300ms\"\n");
  constexpr int each = 100;
  target.survives("600 half-open connections", [&] {
    std::deque<RawSocket> silent;
    std::deque<RawSocket> half;
    for (int i = 0; i < each; ++i) {
      for (const std::string& endpoint : target.endpoints()) {
        silent.emplace_back(endpoint);
        half.emplace_back(endpoint);
        const bool local = endpoint == target.local();
        half.back().send(local ? "\x12\x00\xEE\xFF\x00\x00\x00\x4F\x00"s : "\xFF\0\0\0\0\0\0\0\1\x7F\3"s);
      }
    }
    (void)target.answers();
    CHECK(std::ranges::all_of(half, [](const RawSocket& socket) { return socket.ended(); }));
    // A silent local connection is valid and costs only its descriptor, so the daemon keeps it open.
    for (std::size_t i = 0; i < silent.size(); ++i) {
      if (target.endpoints()[i % 3] != target.local()) CHECK(silent[i].ended());
    }
  });
}

TEST_CASE("clients that never read are bounded and cut off, and others are served") {
  Target target;
  constexpr int clients = 20;
  constexpr std::uint32_t requests = 6000;
  const auto dropped = [&] { return target.stats()["dropped-clients"].get<int>(); };
  target.survives(
      "40 clients that ask 6000 times or more and never read",
      [&] {
        std::deque<RawSocket> local;
        std::deque<Dealer> bus;
        for (int i = 0; i < clients; ++i) {
          local.emplace_back(target.local());
          bus.emplace_back(target.bus(), DealerOptions{.receive_hwm = 1});
        }
        // How many requests fill the buffers depends on the speed of both sides, so repeat until as many
        // clients are dropped as use ZeroMQ. The daemon has read and written in each round, as it tells its
        // count in between, so rounds bound the test however slow the machine is.
        const int enough = dropped() + clients;
        constexpr std::uint32_t most_requests = 100 * requests;
        for (std::uint32_t sent = 0; sent < requests || (dropped() < enough && sent < most_requests);
             sent += 100) {
          std::string frames;
          for (std::uint32_t i = 0; i < 100; ++i) {
            const Parts parts = request("config.get", sent + i);
            frames += local_frame(parts);
            for (Dealer& dealer : bus) dealer.try_send(parts);
          }
          for (const RawSocket& socket : local) socket.send(frames);
        }
        const double memory = target.stats()["memory"].get<double>() / (1 << 20);
        fmt::print("; meanwhile {:.1f} MiB, {} dropped so far", memory, dropped());
        CHECK(dropped() >= enough);
      },
      test::thorough(4, 2));
}

TEST_CASE("routes that are somebody else's lead nowhere but back") {
  Target target;
  Dealer victim(target.bus(), {.identity = "victim"});
  REQUIRE(victim.try_send(request("resource.journal", 7, wire::flag_streaming)));
  while (matchtag_of(victim.receive().value()) != 7) {
  }
  Dealer scheduler(target.bus(), {.identity = "scheduler"});
  REQUIRE(scheduler.try_send(request_parts("resource.acquire", 9, std::nullopt, flag_streaming)));
  REQUIRE(errnum_of(scheduler.receive().value()) == 0);

  Dealer forger(target.bus(), {.identity = "forger"});
  for (const Parts& routes : {Parts{"victim"}, Parts{"scheduler", "victim"}, Parts{"\0\x01"s}}) {
    forger.try_send(request("resource.status", 1, 0, json::object(), routes));
    const Parts response = forger.receive().value();
    CHECK(Parts(response.begin(), response.begin() + static_cast<std::ptrdiff_t>(routes.size())) == routes);
    CHECK(errnum_of(response) == 0);
    forger.try_send(request("resource.disconnect", 2, wire::flag_noresponse, json::object(), routes));
    for (const std::uint32_t matchtag : {7U, 9U}) {
      const json cancel{{"matchtag", matchtag}};
      forger.try_send(request("resource.acquire-cancel", 3, wire::flag_noresponse, cancel, routes));
      forger.try_send(request("resource.journal-cancel", 4, wire::flag_noresponse, cancel, routes));
    }
  }
  // The daemon ignores responses, events and control messages from a client.
  for (const std::uint8_t type : {std::uint8_t{2}, std::uint8_t{4}, std::uint8_t{8}}) {
    const auto forged = [&](std::uint32_t matchtag) {
      return proto(type, flag_route | flag_topic | flag_streaming, nodeid_any, matchtag);
    };
    forger.try_send({"victim", "", "resource.journal", forged(7)});
    forger.try_send({"scheduler", "", "resource.acquire", forged(9)});
    forger.try_send({"", "resource.acquire", forged(9)});
  }
  // A client that takes the identity of a connected client receives none of its messages.
  Dealer impostor(target.bus(), {.identity = "scheduler"});
  impostor.try_send(request("resource.acquire-cancel", 1, wire::flag_noresponse, {{"matchtag", 9}}));
  // Both streams go on, and receive only their own responses.
  forger.try_send(request("resource.drain", 5, 0, {{"targets", "7"}}));
  const Parts drained = forger.receive().value();
  CHECK(matchtag_of(drained) == 5);
  const Parts update = scheduler.receive().value();
  CHECK(matchtag_of(update) == 9);
  CHECK(update.at(2) == "{\"down\":\"7\"}\0"s);
  Parts event = victim.receive().value();
  while (event.at(2).starts_with(R"({"events":[],)")) event = victim.receive().value();
  CHECK(matchtag_of(event) == 7);
  CHECK(event.at(2).find("\"drain\"") != std::string::npos);
  const Deadline now(std::chrono::milliseconds(0));
  CHECK_FALSE(impostor.receive(now));
  CHECK_FALSE(forger.receive(now));
}

TEST_CASE("a request that is sent again changes nothing") {
  Target target;
  LocalClient client(target.local_path());
  const std::string drain = local_frame(request("resource.drain", 1, 0, {{"targets", "3"}}));
  const std::string acquire = local_frame(request_parts("resource.acquire", 2, std::nullopt, flag_streaming));
  client.send(drain + acquire);
  CHECK(errnum_of(client.receive()) == 0);
  CHECK(errnum_of(client.receive()) == 0);
  const json before = target.answers();
  client.send(acquire + acquire);
  for (int i = 0; i < 2; ++i) CHECK(errnum_of(client.receive()) == wire_errno::proto);
  LocalClient other(target.local_path());
  other.send(acquire);
  CHECK(errnum_of(other.receive()) == wire_errno::busy);
  CHECK(target.answers() == before);
}

TEST_CASE("keys that are not the right ones open nothing") {
  Target target;
  const KeyPair stranger;
  std::deque<Dealer> refused;
  for (int i = 0; i < 20; ++i) {
    refused.emplace_back(target.tcp(),
                         DealerOptions{.keys = stranger, .server_key = target.server().public_key});
    refused.emplace_back(target.tcp(),
                         DealerOptions{.keys = target.keys("admin"), .server_key = stranger.public_key});
    refused.emplace_back(target.tcp());
    refused.emplace_back(target.tcp(), DealerOptions{.user = "root"});
  }
  for (Dealer& dealer : refused) dealer.try_send(request("resource.drain", 1, 0, {{"targets", "1"}}));
  target.survives("known keys after wrong ones", [&] {
    Dealer known(target.tcp(), {.keys = target.keys("user"), .server_key = target.server().public_key});
    known.try_send(request("resource.status", 1));
    CHECK(errnum_of(known.receive().value()) == 0);
  });
  for (Dealer& dealer : refused) CHECK_FALSE(dealer.receive(Deadline(std::chrono::milliseconds(0))));
  CHECK(target.answers()["resource.status"]["drain"].empty());
}

/// Returns the text between two marks, and removes the line up to the end of the second mark; returns "" if a
/// mark is missing.
std::string between(std::string& line, const std::string& before, const std::string& after) {
  const std::size_t start = line.find(before);
  if (start == std::string::npos) return {};
  const std::size_t end = line.find(after, start + before.size());
  if (end == std::string::npos) return {};
  std::string text = line.substr(start + before.size(), end - start - before.size());
  line.erase(0, end);
  return text;
}

/// The role that each topic requires, from docs/security.md.
std::map<std::string, std::string> documented_roles() {
  std::ifstream page(RESOURCED_SOURCE "/docs/security.md");
  std::map<std::string, std::string> roles;
  for (std::string line; std::getline(page, line);) {
    const std::string topic = between(line, "| `", "` | ");
    const std::string role = between(line, "` | ", " |");
    // The page also has a table of limits; only a role is a single word.
    const bool is_word = role.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
    if (!role.empty() && is_word) roles[topic] = role;
  }
  return roles;
}

bool may(const std::string& role, const std::string& needed) {
  static const std::map<std::string, std::set<std::string>> implied{{"user", {"user"}},
                                                                    {"admin", {"admin", "user"}},
                                                                    {"scheduler", {"scheduler", "user"}},
                                                                    {"agent", {"agent"}}};
  return needed == "any" || implied.at(role).contains(needed);
}

/// Requests every topic, and requires EPERM exactly where the role is not sufficient.
template <typename Ask>
void ask_for_all(const std::string& role, const Ask& ask) {
  for (const auto& [topic, needed] : documented_roles()) {
    CAPTURE(role);
    CAPTURE(topic);
    // Cancels and disconnects need no role, and are not answered.
    if (needed == "any") continue;
    CHECK((ask(request(topic, 1, wire::flag_streaming)) == wire_errno::perm) == !may(role, needed));
  }
}

TEST_CASE("with a key every topic takes its role") {
  for (const std::string role : {"user", "admin", "scheduler", "agent"}) {
    Target target;
    ask_for_all(role, [&](const Parts& parts) {
      Dealer dealer(target.tcp(), {.keys = target.keys(role), .server_key = target.server().public_key});
      dealer.try_send(parts);
      return errnum_of(dealer.receive().value());
    });
  }
}

TEST_CASE("another user of the machine is a guest on every topic") {
  if (!can_be_other_users()) return;
  Target target;
  const json before = target.answers();
  // A message with the owner's credentials must change nothing.
  const auto claiming = [](Parts parts) {
    parts.back().replace(4, 8, "\0\0\0\0\0\0\0\x01"s);
    return parts;
  };
  for (const bool claims : {false, true}) {
    ask_for_all("user", [&](const Parts& parts) {
      std::optional<OtherUser> guest(std::in_place);
      LocalClient client(target.local_path());
      guest.reset();
      client.send(local_frame(claims ? claiming(parts) : parts));
      return errnum_of(client.receive());
    });
  }
  CHECK(target.answers() == before);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
