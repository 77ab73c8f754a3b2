// The frames of a broker's channel and the messages of the link, in portions of any size and of any length.
#include "flux/link/frames.hpp"

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"
#include "relay_ends.hpp"

using namespace resourced;
using namespace resourced::flux::link;
using proto::Message;
using relay_test::request;
namespace flag = proto::flag;

namespace {

TEST_CASE("a line for the broker's log is as RFC 5424 has it") {
  using namespace std::chrono;
  const auto time = system_clock::time_point(seconds(1795334400) + microseconds(1));
  const Message line = make_log_line(Severity::error, 3, 17, time, "resourced has ended");
  CHECK(line.topic == "log.append");
  CHECK(line.has(flag::noresponse));
  CHECK(*line.payload == "<24>1 2026-11-22T08:00:00.000001Z 3 resource 17 - - resourced has ended");
}

TEST_CASE("a matchtag has its generation, however many there were before") {
  for (const std::uint32_t number : {1U, 0xFFFFFFU, 0x1000001U, 0xFFFFFFFFU}) {
    CHECK(generation_of(matchtag_of(7, number)) == 7);
    CHECK(generation_of(matchtag_of(255, number)) == 255);
  }
  CHECK(matchtag_of(2, 3) == 0x02000003U);
}

TEST_CASE("bytes come in any portions") {
  const std::string first = proto::encode_local_frame(request("resource.ping", 1));
  const std::string second =
      proto::encode_local_frame(request("resource.status", 2, "x", 0, std::string(70000, 'x')));
  std::string link;
  append_link_message(link, {"mark", first});
  append_link_message(link, {"running", {}});
  append_link_message(link, {{}, second});
  for (const std::size_t portion : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, link.size()}) {
    FrameReader frames;
    LinkReader messages;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < first.size() + second.size(); at += portion) {
      frames.feed((first + second).substr(at, portion));
      while (const auto frame = frames.next()) got.emplace_back(*frame);
    }
    CHECK(got == std::vector<std::string>{first, second});
    got.clear();
    for (std::size_t at = 0; at < link.size(); at += portion) {
      messages.feed(std::string_view(link).substr(at, portion));
      while (const auto message = messages.next())
        got.push_back(std::string(message->mark) + std::string(message->frame));
    }
    CHECK(got == std::vector<std::string>{"mark" + first, "running", second});
  }
}

std::string header_of(std::size_t length) {
  std::string header("\x12\x00\xee\xff", 4);
  proto::append_u32(header, static_cast<std::uint32_t>(length));
  return header;
}

TEST_CASE("a frame that is too long is told once and passed over by its length, in any portions") {
  const std::string ping = proto::encode_local_frame(request("resource.ping", 1));
  constexpr std::size_t length = max_frame + 1;
  FrameReader reader;
  reader.feed(ping + header_of(length) + "abc");
  CHECK(reader.next() == ping);
  try {
    (void)reader.next();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.errnum() == EMSGSIZE);
  }
  CHECK_FALSE(reader.next().has_value());
  const std::string part(std::size_t{1} << 20U, '\0');
  std::size_t left = length - 3;
  for (; left > part.size(); left -= part.size()) {
    reader.feed(part);
    REQUIRE_FALSE(reader.next().has_value());
  }
  reader.feed(part.substr(0, left) + ping);
  CHECK(reader.next() == ping);
  CHECK_FALSE(reader.next().has_value());
}

TEST_CASE("a request that is too long comes without its payload, in any portions") {
  const std::string ping = proto::encode_local_frame(request("resource.ping", 1));
  Message long_one = request("resource.status", 7, "client", flag::streaming, std::string(max_request, 'x'));
  long_one.routes.insert(long_one.routes.begin(), 300, "hop");
  const std::string bytes = ping + proto::encode_local_frame(long_one) + ping;
  for (const std::size_t portion : {std::size_t{977}, std::size_t{1} << 20U, bytes.size()}) {
    CAPTURE(portion);
    FrameReader reader;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < bytes.size(); at += portion) {
      reader.feed(std::string_view(bytes).substr(at, portion));
      while (const auto frame = reader.next()) {
        got.emplace_back(*frame);
        CHECK(reader.is_cut() == (got.size() == 2));
      }
    }
    REQUIRE(got.size() == 3);
    CHECK(got[0] == ping);
    CHECK(got[2] == ping);
    Message expected = long_one;
    expected.payload = nullptr;
    expected.flags &= static_cast<std::uint8_t>(~flag::payload);
    CHECK(got[1] == proto::encode_local_frame(expected));
  }
}

TEST_CASE("an answer may be as long as a frame, and a request whose routes are too long is passed over") {
  Message answer = request("kvs.lookup", 7, "client", 0, std::string(max_request, 'x'));
  answer.routes.clear();
  const std::string whole = proto::encode_local_frame(answer);
  FrameReader reader;
  reader.feed(whole);
  CHECK(reader.next() == whole);
  CHECK_FALSE(reader.is_cut());
  Message forged = request(std::string(70000, 't'), 7, "client", 0, std::string(max_request, 'x'));
  const std::string ping = proto::encode_local_frame(request("resource.ping", 1));
  const std::string bytes = proto::encode_local_frame(forged) + ping;
  for (const std::size_t first : {std::size_t{69000}, bytes.size()}) {
    reader.feed(std::string_view(bytes).substr(0, first));
    CHECK_THROWS_AS((void)reader.next(), Error);
    reader.feed(std::string_view(bytes).substr(first));
    CHECK(reader.next() == ping);
  }
}

TEST_CASE("the link has room for the longest frame with its header") {
  const auto length = [](std::size_t size) {
    std::string text;
    proto::append_u32(text, static_cast<std::uint32_t>(size));
    return text;
  };
  constexpr std::size_t most = max_frame + proto::local_header_size;
  FrameReader frames;
  frames.feed(header_of(max_frame));
  CHECK_FALSE(frames.next().has_value());
  LinkReader link;
  link.feed(length(0) + length(most));
  CHECK_FALSE(link.next().has_value());
  LinkReader longer;
  longer.feed(length(0) + length(most + 1));
  CHECK_THROWS_AS((void)longer.next(), Error);
}

TEST_CASE("what is no frame is an error, and no read beyond it") {
  FrameReader reader;
  reader.feed("GET / HTTP/1.1");
  CHECK_THROWS_AS((void)reader.next(), Error);
  const std::string whole = proto::encode_local_frame(request("resource.ping", 1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A frame that is cut: its last bytes are not PROTO.
    const std::string cut(whole.substr(0, size));
    CHECK_THROWS_AS((void)read_head(cut), Error);
  }
  LinkReader link;
  link.feed(std::string("\x7f\xff\xff\xff", 4));
  CHECK_THROWS_AS((void)link.next(), Error);
}

}  // namespace
