// The framing of the local connector: recorded frames, limits, and streams that are split, truncated or
// damaged.
#include "proto/local_frame.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "proto/message.hpp"
#include "tools.hpp"

using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

const std::string magic = from_hex("1200eeff");
const std::string proto = from_hex("8e 01 08 00 ffffffff 00000000 00000000 00000000");

std::string be32(std::size_t value) { return from_hex(fmt::format("{:08x}", value)); }

std::string frame(const std::string& body) { return magic + be32(body.size()) + body; }

/// The parts of each frame of a stream, then the remaining bytes or the error.
std::vector<std::string> outcome(const std::vector<std::string>& chunks, std::size_t max_frame) {
  std::vector<std::string> seen;
  LocalFrameDecoder decoder(max_frame);
  try {
    for (const auto& chunk : chunks) {
      decoder.feed(chunk);
      while (const auto parts = decoder.next()) {
        std::string text;
        for (const auto part : *parts) {
          text += fmt::format("\"{}\" ", part);
        }
        seen.push_back(text);
      }
    }
    seen.push_back(fmt::format("{} bytes left", decoder.pending()));
  } catch (const resourced::Error& error) {
    REQUIRE(error.errnum() == EPROTO);
    seen.emplace_back(error.what());
  }
  return seen;
}

std::vector<std::string> split_at_random(const std::string& bytes, std::mt19937& random) {
  std::vector<std::string> chunks;
  const auto largest = std::uniform_int_distribution<std::size_t>(1, 64)(random);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = std::uniform_int_distribution<std::size_t>(0, largest)(random);
    chunks.push_back(bytes.substr(at, size));
    at += size;
  }
  return chunks;
}

std::string random_text(std::mt19937& random, std::size_t longest, char first, char last) {
  const auto size = std::uniform_int_distribution<std::size_t>(1, longest)(random);
  std::string text(size, ' ');
  for (char& c : text) {
    c = static_cast<char>(std::uniform_int_distribution<int>(first, last)(random));
  }
  return text;
}

Message random_message(std::mt19937& random) {
  const auto bits = random();
  auto message = make_request(random_text(random, 255, '!', '~'), static_cast<std::uint32_t>(random()),
                              (bits & 1U) != 0 ? make_payload(random_text(random, 700, 'a', 'z')) : nullptr,
                              (bits & 2U) != 0 ? flag::streaming : std::uint8_t{0});
  for (auto routes = (bits >> 2U) % 4; routes > 0; --routes) {
    message.push_route(random_text(random, 255, '\x01', '~'));
  }
  return (bits & 16U) != 0 ? make_error(message, EINVAL, "no") : message;
}

}  // namespace

TEST_CASE("recorded frames: the fields are those that were sent, and encode to the same bytes") {
  const auto recorded = recorded_frames();
  REQUIRE(recorded.size() == 3);
  for (const auto& row : recorded) {
    CAPTURE(row.command);
    LocalFrameDecoder decoder;
    decoder.feed(row.bytes);
    const auto parts = decoder.next();
    REQUIRE(parts);
    const auto message = from_parts(*parts);
    CHECK(message.type == MessageType::request);
    CHECK(message.flags == row.flags);
    CHECK(message.userid == userid_unknown);
    CHECK(message.rolemask == role::none);
    CHECK(message.nodeid() == row.nodeid);
    CHECK(message.matchtag == row.matchtag);
    CHECK(message.routes.empty());
    CHECK(message.topic == row.topic);
    CHECK(message.has(flag::payload) == !row.payload.empty());
    if (!row.payload.empty()) {
      CHECK(parse_object(message) == nlohmann::json::parse(row.payload));
      CHECK(message.payload->back() == '\0');
    }
    CHECK(encode_local_frame(message) == row.bytes);
    CHECK_FALSE(decoder.next());
    CHECK(decoder.pending() == 0);
  }
}

TEST_CASE("smallest frame: a message of PROTO alone") {
  const auto bytes = from_hex("1200eeff 00000015 14") + proto;
  LocalFrameDecoder decoder;
  decoder.feed(bytes);
  const auto parts = decoder.next();
  REQUIRE(parts);
  CHECK(*parts == Parts{proto});
  CHECK(encode_local_frame(from_parts(*parts)) == bytes);
}

TEST_CASE("part lengths: one byte up to 254, four more bytes from 255") {
  for (const std::size_t size : {0U, 1U, 253U, 254U, 255U, 256U, 65536U}) {
    CAPTURE(size);
    const std::string payload(size, 'p');
    const auto message = make_request("a.b", 1, std::make_shared<const std::string>(payload));
    const auto length = size < 255 ? from_hex(fmt::format("{:02x}", size)) : from_hex("ff") + be32(size);
    auto body = from_hex("00 03") + "a.b";
    body += length + payload;
    body += from_hex("14 8e 01 01 0b ffffffff 00000000 ffffffff 00000001");
    const auto bytes = frame(body);
    CHECK(encode_local_frame(message) == bytes);
    LocalFrameDecoder decoder;
    decoder.feed(bytes);
    const auto parts = decoder.next();
    REQUIRE(parts);
    CHECK(describe(from_parts(*parts)) == describe(message));
  }
  // A short length in the long form is accepted, although it is not needed.
  LocalFrameDecoder decoder;
  decoder.feed(frame(from_hex("ff 00000014") + proto));
  CHECK(decoder.next() == Parts{proto});
}

TEST_CASE("append: frames follow one another, and a shared payload is not touched") {
  const auto payload = make_payload("{}");
  std::string stream = "before";
  append_local_frame(stream, make_request("a.b", 1, payload));
  append_local_frame(stream, make_request("a.c", 2, payload));
  CHECK(stream == "before" + encode_local_frame(make_request("a.b", 1, make_payload("{}"))) +
                      encode_local_frame(make_request("a.c", 2, make_payload("{}"))));
}

TEST_CASE("malformed streams are EPROTO as soon as they show it, and stay so") {
  struct Row {
    const char* error;
    std::string bytes;
  };
  const Row rows[] = {
      {"wrong magic", from_hex("13")},
      {"wrong magic", from_hex("12 01")},
      {"wrong magic", from_hex("ffee0012")},
      {"length 0 is too short", from_hex("1200eeff 00000000")},
      {"length 20 is too short", from_hex("1200eeff 00000014")},
      {"length 1001 is more than 1000", from_hex("1200eeff 000003e9")},
      {"length 4294967295 is more than 1000", from_hex("1200eeff ffffffff")},
      {"part 0 of 21 bytes where 20 are left", frame(from_hex("15") + proto)},
      {"part 1 of 1 bytes where 0 are left", frame(from_hex("14") + proto + from_hex("01"))},
      {"part 0 of 4294967295 bytes where 16 are left", frame(from_hex("ff ffffffff") + proto.substr(4))},
      {"length of part 1 is cut off", frame(from_hex("14") + proto + from_hex("ff 000000"))},
      {"more than 20 parts", frame(std::string(21, '\0'))},
  };
  for (const auto& row : rows) {
    CAPTURE(row.error);
    LocalFrameDecoder decoder(1000);
    decoder.feed(row.bytes);
    const auto next = [&] { return decoder.next(); };
    const auto text = error_of(next);
    CAPTURE(text);
    CHECK(text.find(row.error) != std::string::npos);
    CHECK(errnum_of(next) == EPROTO);
    // Later bytes do not repair the stream, and are not kept.
    decoder.feed(frame(from_hex("14") + proto));
    CHECK(error_of(next) == text);
    CHECK(decoder.pending() == 0);
  }
}

TEST_CASE("limit: a frame of exactly the limit passes") {
  const auto bytes = frame(from_hex("14") + proto);
  LocalFrameDecoder exact(21);
  exact.feed(bytes);
  CHECK(exact.next());
  const auto longer = frame(from_hex("00 14") + proto);
  exact.feed(longer);
  CHECK(errnum_of([&] { return exact.next(); }) == EPROTO);
}

TEST_CASE("a frame that holds no message does not harm the next one") {
  LocalFrameDecoder decoder;
  decoder.feed(frame(from_hex("14") + std::string(20, 'x')) + frame(from_hex("14") + proto));
  const auto bad = decoder.next();
  REQUIRE(bad);
  CHECK(errnum_of([&] { return from_parts(*bad); }) == EPROTO);
  CHECK(decoder.next() == Parts{proto});
}

TEST_CASE("truncation: no frame and no error until the last byte is there") {
  for (const auto& row : recorded_frames()) {
    CAPTURE(row.command);
    for (std::size_t size = 0; size < row.bytes.size(); ++size) {
      LocalFrameDecoder decoder;
      decoder.feed(std::string_view(row.bytes).substr(0, size));
      REQUIRE_FALSE(decoder.next());
      REQUIRE(decoder.pending() == size);
      decoder.feed(std::string_view(row.bytes).substr(size));
      const auto parts = decoder.next();
      REQUIRE(parts);
      REQUIRE(encode_local_frame(from_parts(*parts)) == row.bytes);
    }
  }
}

namespace {

/// The layout of a recorded frame, computed from its fields: header, delimiter, topic, payload (if any),
/// PROTO, each part after its length byte.
struct Layout {
  explicit Layout(const Recorded& recorded)
      : topic(10),
        payload(topic + recorded.topic.size() + 1),
        proto(recorded.bytes.size() - proto_size),
        has_payload((recorded.flags & flag::payload) != 0) {}

  [[nodiscard]] bool in_topic(std::size_t at) const { return at >= topic && at < payload - 1; }
  [[nodiscard]] bool in_payload(std::size_t at) const {
    return has_payload && at >= payload && at < proto - 1;
  }
  [[nodiscard]] bool in_proto(std::size_t at) const { return at >= proto; }

  std::size_t topic;
  std::size_t payload;
  std::size_t proto;
  bool has_payload;
};

enum class Expected { same_bytes, without_last_topic_byte, incomplete, error };

/// The expected result of decoding a recorded frame with one byte changed.
Expected judge(const Recorded& recorded, std::size_t at, unsigned char byte) {
  const Layout layout(recorded);
  if (layout.in_payload(at)) {
    return Expected::same_bytes;
  }
  if (layout.in_topic(at)) {
    if (byte == 0 && at == layout.payload - 2) {
      return Expected::without_last_topic_byte;
    }
    return byte > 0x20 && byte < 0x7f ? Expected::same_bytes : Expected::error;
  }
  if (layout.in_proto(at)) {
    constexpr unsigned parts = flag::topic | flag::payload | flag::route;
    switch (at - layout.proto) {
      case 0:
      case 1:
        return Expected::error;
      case 2:
        // Control messages are an error: they would have PROTO as their only part.
        return byte == 1 || byte == 2 || byte == 4 ? Expected::same_bytes : Expected::error;
      case 3:
        return (byte & parts) == (recorded.flags & parts) ? Expected::same_bytes : Expected::error;
      default:
        return Expected::same_bytes;
    }
  }
  if (at >= 4 && at < 8) {
    auto header = recorded.bytes.substr(4, 4);
    header[at - 4] = static_cast<char>(byte);
    std::size_t length = 0;
    for (const char c : header) {
      length = length * 256 + static_cast<unsigned char>(c);
    }
    return length > recorded.bytes.size() - 8 && length <= default_max_local_frame ? Expected::incomplete
                                                                                   : Expected::error;
  }
  // The magic number, or a length: with any other length the parts do not fill the frame, or do not match the
  // flags.
  return Expected::error;
}

Expected observe(const Recorded& recorded, const std::string& bytes) {
  try {
    LocalFrameDecoder decoder;
    decoder.feed(bytes);
    const auto parts = decoder.next();
    if (!parts) {
      REQUIRE(decoder.pending() == bytes.size());
      return Expected::incomplete;
    }
    const auto message = from_parts(*parts);
    REQUIRE(decoder.pending() == 0);
    const auto again = encode_local_frame(message);
    if (again == bytes) {
      return Expected::same_bytes;
    }
    REQUIRE(message.topic == recorded.topic.substr(0, recorded.topic.size() - 1));
    REQUIRE(again.size() == bytes.size() - 1);
    return Expected::without_last_topic_byte;
  } catch (const resourced::Error& error) {
    REQUIRE(error.errnum() == EPROTO);
    return Expected::error;
  }
}

}  // namespace

TEST_CASE("corruption: every other value of every byte does what the specification makes of it") {
  for (const auto& row : recorded_frames()) {
    CAPTURE(row.command);
    for (std::size_t at = 0; at < row.bytes.size(); ++at) {
      for (unsigned change = 1; change < 256; ++change) {
        auto bytes = row.bytes;
        const auto byte = static_cast<unsigned char>(static_cast<unsigned char>(bytes[at]) ^ change);
        bytes[at] = static_cast<char>(byte);
        if (observe(row, bytes) != judge(row, at, byte)) {
          FAIL_CHECK(fmt::format("byte {} as {:#04x}: outcome {} instead of {}", at, byte,
                                 static_cast<int>(observe(row, bytes)),
                                 static_cast<int>(judge(row, at, byte))));
        }
      }
    }
  }
}

TEST_CASE("corruption: parts that are cut anywhere") {
  for (const auto& row : recorded_frames()) {
    CAPTURE(row.command);
    LocalFrameDecoder decoder;
    decoder.feed(row.bytes);
    const auto whole = decoder.next();
    REQUIRE(whole);
    for (std::size_t part = 0; part < whole->size(); ++part) {
      CAPTURE(part);
      auto without = *whole;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(part));
      CHECK(errnum_of([&] { return from_parts(without); }) == EPROTO);

      const bool is_topic = part == 1;
      const bool is_payload = part == 2 && whole->size() == 4;
      for (std::size_t size = 0; size < (*whole)[part].size(); ++size) {
        auto cut = *whole;
        cut[part] = cut[part].substr(0, size);
        const bool good = is_payload || (is_topic && size > 0);
        REQUIRE(errnum_of([&] { return from_parts(cut); }) == (good ? 0 : EPROTO));
        if (good) {
          const auto copy = parts_of(from_parts(cut));
          REQUIRE(std::equal(copy.begin(), copy.end(), cut.begin(), cut.end()));
        }
      }
    }
  }
}

TEST_CASE("streams: messages come out as they went in, however the bytes are split") {
  constexpr unsigned seed = 20240611;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    std::vector<std::string> sent;
    std::string stream;
    for (int i = 0; i < 20; ++i) {
      const auto message = random_message(random);
      sent.push_back(describe(message));
      append_local_frame(stream, message);
    }
    std::vector<std::string> received;
    LocalFrameDecoder decoder;
    for (const auto& chunk : split_at_random(stream, random)) {
      decoder.feed(chunk);
      while (const auto parts = decoder.next()) {
        received.push_back(describe(from_parts(*parts)));
      }
    }
    CHECK(received == sent);
    CHECK(decoder.pending() == 0);
  }
}

TEST_CASE("streams: large frames, each fed together with the start of the next") {
  const auto large = make_request("a.b", 1, make_payload(std::string(200000, 'p')));
  const auto bytes = encode_local_frame(large);
  constexpr std::size_t ahead = 1000;
  std::string stream;
  for (int i = 0; i < 4; ++i) {
    stream += bytes;
  }
  LocalFrameDecoder decoder;
  decoder.feed(std::string_view(stream).substr(0, ahead));
  for (std::size_t at = ahead; at < stream.size(); at += bytes.size()) {
    REQUIRE_FALSE(decoder.next());
    decoder.feed(std::string_view(stream).substr(at, bytes.size()));
    const auto parts = decoder.next();
    REQUIRE(parts);
    CHECK(encode_local_frame(from_parts(*parts)) == bytes);
  }
  CHECK_FALSE(decoder.next());
  CHECK(decoder.pending() == 0);
}

TEST_CASE("streams: damaged bytes fare the same at once and in pieces") {
  constexpr unsigned seed = 20240612;
  CAPTURE(seed);
  std::mt19937 random(seed);
  constexpr std::size_t max_frame = 4096;
  std::size_t broken = 0;
  std::size_t whole = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::string stream;
    for (int i = 0; i < 4; ++i) {
      append_local_frame(stream, random_message(random));
    }
    const auto at = std::uniform_int_distribution<std::size_t>(0, stream.size() - 1)(random);
    stream[at] = static_cast<char>(static_cast<unsigned char>(random()));
    const auto at_once = outcome({stream}, max_frame);
    REQUIRE(outcome(split_at_random(stream, random), max_frame) == at_once);
    ++(at_once.back() == "0 bytes left" ? whole : broken);
  }
  // Most bytes are data that the framing does not check; some are lengths or magic numbers.
  CHECK(broken > 20);
  CHECK(whole > 20);
}

TEST_CASE("streams: noise is rejected, and from_parts copes with whatever a frame holds") {
  constexpr unsigned seed = 20240613;
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::size_t messages = 0;
  for (int round = 0; round < 20000; ++round) {
    CAPTURE(round);
    // Random parts before a PROTO with random flags: many of these frames pass the first checks.
    std::vector<std::string> parts;
    const auto count = std::uniform_int_distribution<int>(0, 4)(random);
    for (int i = 0; i < count; ++i) {
      const bool blank = random() % 4 == 0;
      parts.push_back(blank ? "" : random_text(random, 12, random() % 8 == 0 ? '\0' : '!', '~'));
    }
    parts.push_back(from_hex("8e01") + static_cast<char>(1U << (random() % 4)) +
                    static_cast<char>(static_cast<unsigned char>(random())) + std::string(16, '\x01'));
    const auto error = errnum_of([&] { return parse(parts); });
    if (error != 0) {
      REQUIRE(error == EPROTO);
      continue;
    }
    ++messages;
    const auto message = parse(parts);
    auto again = parts_of(message);
    const auto topic = message.routes.size() + (message.has(flag::route) ? 1 : 0);
    if (message.has(flag::topic) && again.at(topic) + '\0' == parts.at(topic)) {
      again[topic] += '\0';
    }
    REQUIRE(again == parts);

    const auto frames = outcome({random_text(random, 64, '\0', '~')}, 4096);
    REQUIRE(frames.size() == 1);
  }
  CHECK(messages > 500);
}
