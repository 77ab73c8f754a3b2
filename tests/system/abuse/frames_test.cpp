// Random frames, most of them modified requests, from another user and from the owner. The daemon must
// process or refuse each, and send only valid responses.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "harness/other_user.hpp"
#include "target.hpp"
#include "wire/dealer.hpp"
#include "wire/local_client.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::e2e {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t batch = 100;
constexpr const char* no_limits = "requests-per-second = 1000000000\noutstanding-requests = 1000000\n";

struct Request {
  const char* topic;
  const char* payload;
  std::uint8_t flags = 0;
};

constexpr std::array requests{
    Request{"resource.status", nullptr},
    Request{"resource.sched-status", nullptr},
    Request{"resource.get", "{}"},
    Request{"resource.ping", R"({"x":[1,2,{"y":"z"}]})"},
    Request{"resource.stats-get", nullptr},
    Request{"config.get", nullptr},
    Request{
        "feasibility.check",
        R"({"jobspec":{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":2}]}],"tasks":[{"command":["x"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":60,"constraints":{"and":[{"hostlist":["test[0-3]"]},{"not":[{"ranks":["0-1"]}]}]}}}}})"},
    Request{"resource.acquire", nullptr, flag_streaming},
    Request{"resource.acquire-cancel", R"({"matchtag":1})", flag_noresponse},
    Request{"resource.acquire-mute", nullptr},
    Request{"resource.journal", R"({"targets":"0-3","since":1.5})", flag_streaming},
    Request{"resource.journal-cancel", R"({"matchtag":1})", flag_noresponse},
    Request{"resource.agent", R"({"rank":1,"host":"test1"})", flag_streaming},
    Request{"resource.agent-beat", R"({"matchtag":1})", flag_noresponse},
    Request{"resource.agent-health", R"({"matchtag":1,"status":1,"reason":"why"})"},
    Request{"resource.disconnect", nullptr, flag_noresponse},
    Request{"resource.drain", R"({"targets":"1-3","reason":"why","mode":"update"})"},
    Request{"resource.undrain", R"({"targets":"test[1,3]","mode":"force-overwrite"})"},
    Request{"resource.property", R"({"op":"add","name":"fast","targets":"1-3"})"},
    Request{"resource.expiration", R"({"expiration":4102444800.5})"},
    Request{"resource.shrink", R"({"targets":"99"})"},
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  /// The parts of a request, usually with some of them invalid.
  Parts parts() {
    const Request& request = requests.at(below(requests.size()));
    std::optional<std::string> payload;
    if (request.payload != nullptr) payload = std::string(request.payload) + '\0';
    Parts parts = request_parts(request.topic, static_cast<std::uint32_t>(below(8)), payload, request.flags);
    for (std::size_t changes = below(4); changes > 0; --changes) change(parts);
    return parts;
  }

  /// A well-formed frame with any parts: the daemon also reads the frames after it.
  std::string frame() {
    constexpr std::size_t most_parts = 20;
    constexpr std::size_t least_size = frame_header_size + 21;
    while (true) {
      const Parts made = parts();
      if (made.size() > most_parts) continue;
      std::string bytes = local_frame(made);
      if (bytes.size() >= least_size) return bytes;
    }
  }

  /// A frame that may be malformed: truncated, modified, or made of random bytes.
  std::string broken_frame() {
    std::string frame = local_frame(parts());
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(frame);
    if (below(4) == 0) frame = noise(below(300));
    return frame;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  void change(Parts& parts) {
    const std::size_t place = below(parts.size());
    switch (below(12)) {
      case 0:
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place));
        if (parts.empty()) parts.emplace_back();
        return;
      case 1:
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(place), noise(below(20)));
        return;
      case 2:
        parts.insert(parts.begin(), below(20), "route");
        return;
      default:
        change(parts[place]);
    }
  }

  void change(std::string& bytes) {
    constexpr std::string_view telling("\0\xFF\"{}[],:-0129eE.\\\x7F", 20);
    const std::size_t place = below(bytes.size() + 1);
    switch (below(5)) {
      case 0:
        bytes.insert(place, noise(1 + below(8)));
        return;
      case 1:
        bytes.insert(place, 1 + below(3), telling[below(telling.size())]);
        return;
      case 2:
        bytes.erase(place, 1 + below(8));
        return;
      case 3:
        bytes.insert(place, std::string(bytes, below(bytes.size() + 1), below(40)));
        return;
      default:
        if (place < bytes.size()) bytes[place] = static_cast<char>(random_());
    }
  }

  std::mt19937_64 random_;
};

/// Whether this is the PROTO of a response: with a topic, and with a valid errno.
bool is_response(std::string_view proto) {
  constexpr std::uint32_t last_errno = 133;
  return proto.size() == 20 && proto.starts_with("\x8E\x01\x02") && number_at(proto, errnum_at) <= last_errno;
}

/// Whether the bytes are complete responses; the last one may be cut, as the daemon may end a connection at
/// any byte.
bool only_responses(std::string_view bytes) {
  try {
    while (bytes.size() > frame_header_size) {
      const std::size_t size = frame_size(bytes);
      if (bytes.size() - frame_header_size < size) return true;
      const Parts parts = split_frame(bytes.substr(frame_header_size, size));
      if (parts.empty() || !is_response(parts.back())) return false;
      bytes.remove_prefix(frame_header_size + size);
    }
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

/// Sends a hundred frames on one connection, of which the last may be malformed, and checks the answers.
bool flood_local(Target& target, Generator& generator, bool as_guest) {
  std::optional<OtherUser> guest;
  if (as_guest) guest.emplace();
  const RawSocket socket(target.local());
  guest.reset();
  std::string frames;
  for (std::size_t i = 1; i < batch; ++i) frames += generator.frame();
  frames += generator.broken_frame();
  std::string answers;
  std::array<char, 65536> buffer;
  for (std::string_view left = frames;;) {
    // Read while writing: the daemon drops clients that do not read.
    const short wanted = left.empty() ? POLLIN : POLLIN | POLLOUT;
    pollfd entry{socket.fd(), wanted, 0};
    if (::poll(&entry, 1, 30000) <= 0) return false;
    if ((entry.revents & POLLOUT) != 0 && !left.empty()) {
      const ssize_t sent = ::send(socket.fd(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0) left = {};
      if (left.empty()) ::shutdown(socket.fd(), SHUT_WR);
    }
    if ((entry.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    const ssize_t size = ::recv(socket.fd(), buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    answers.append(buffer.data(), static_cast<std::size_t>(size));
  }
  // The first byte is the welcome.
  return answers.starts_with('\0') && only_responses(std::string_view(answers).substr(1));
}

/// Sends a hundred messages on one ZeroMQ connection, then a request that must be answered.
bool flood_bus(Target& target, Generator& generator) {
  Dealer dealer(target.bus());
  for (std::size_t i = 0; i < batch; ++i) dealer.try_send(generator.parts());
  constexpr std::uint32_t last = 4711;
  dealer.try_send(request_parts("resource.nosuch", last));
  while (const auto parts = dealer.receive()) {
    if (!is_response(parts->back())) return false;
    if (matchtag_of(*parts) == last) return true;
  }
  return false;
}

void flood(Target& target, std::size_t frames, std::uint64_t seed, bool as_guest) {
  Generator generator(seed);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < frames / batch; ++i) {
    // A guest cannot connect to the bus.
    const bool over_bus = !as_guest && i % 10 == 9;
    if (!(over_bus ? flood_bus(target, generator) : flood_local(target, generator, as_guest))) ++wrong;
  }
  CHECK(wrong == 0);
}

std::size_t frames_in_all() { return from_environment("RESOURCED_ABUSE_FRAMES", 40000); }

TEST_SUITE_BEGIN("frames");

TEST_CASE("random frames of another user change nothing") {
  if (!can_be_other_users()) return;
  Target target(no_limits);
  std::uint64_t seed = 1;
  const std::size_t frames = frames_in_all() / 4;
  fmt::print("{} frames twice, seeds 1 and 2\n", frames);
  target.survives("random frames as a guest", [&] { flood(target, frames, seed++, true); });
}

TEST_CASE("random frames of the owner do what they say, or nothing") {
  Target target(no_limits);
  const std::size_t frames = frames_in_all() / 2;
  fmt::print("{} frames, seed 3\n", frames);
  flood(target, frames, 3, false);
  const auto stats = target.stats();
  fmt::print("{}\n", stats.dump());
  CHECK(stats["clients"] == 1);
  // Each message counts for its topic or as dropped, except for cancels and similar requests.
  std::size_t counted = stats["dropped-frames"];
  for (const auto& outcomes : stats["requests"]) {
    counted += outcomes["succeeded"].get<std::size_t>() + outcomes["failed"].get<std::size_t>();
  }
  CHECK(counted > frames / 2);
  CHECK(stats["dropped-frames"] > 0);
  CHECK(stats["events"] > 100);
  // A restart must restore the same state from the store.
  const auto before = target.answers();
  target.restart();
  CHECK(target.answers()["resource.status"] == before["resource.status"]);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
