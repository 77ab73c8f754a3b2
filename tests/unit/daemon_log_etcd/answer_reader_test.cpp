// Answers of HTTP from their bytes, in one piece or byte by byte.
#include "daemon/log/etcd/answer_reader.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using resourced::daemon::log::etcd::AnswerReader;

namespace {

constexpr std::string_view sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view chunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1\r\no\r\n0\r\n\r\n";
constexpr std::string_view endless = "HTTP/1.1 503 Unavailable\r\n\r\nhello";

}  // namespace

TEST_CASE("an answer is the same in pieces of any size") {
  for (const std::string_view bytes : {sized, chunked}) {
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
      AnswerReader answer(std::nullopt);
      std::string body;
      for (std::size_t at = 0; at < bytes.size(); at += size) {
        CHECK_FALSE(answer.is_done());
        CHECK_FALSE(answer.put(bytes.substr(at, size)));
        body += answer.take_body();
      }
      CHECK(answer.is_done());
      CHECK(answer.status() == 200);
      CHECK(answer.keeps_alive());
      CHECK(body == "hello");
    }
  }
}

TEST_CASE("the end of the connection ends a body without a length only") {
  AnswerReader answer(std::nullopt);
  CHECK_FALSE(answer.put(endless));
  CHECK_FALSE(answer.is_done());
  CHECK_FALSE(answer.put_end());
  CHECK(answer.is_done());
  CHECK(answer.status() == 503);
  CHECK_FALSE(answer.keeps_alive());
  CHECK(answer.take_body() == "hello");

  AnswerReader nothing(std::nullopt);
  CHECK(nothing.put_end().message() == "end of stream");
  for (const std::string_view bytes : {sized, chunked}) {
    AnswerReader cut(std::nullopt);
    CHECK_FALSE(cut.put(bytes.substr(0, bytes.size() - 1)));
    CHECK(cut.put_end().message() == "partial message");
  }
}

TEST_CASE("bytes after an answer end the use of its connection") {
  AnswerReader answer(std::nullopt);
  CHECK_FALSE(answer.put(std::string(sized) + "HTTP"));
  CHECK(answer.is_done());
  CHECK_FALSE(answer.keeps_alive());
}

TEST_CASE("what is not HTTP, too long or without an end is an error") {
  AnswerReader other(std::nullopt);
  CHECK(other.put("SSH-2.0-OpenSSH\r\n\r\n"));
  CHECK(other.status() == 0);
  AnswerReader small(4);
  CHECK(small.put(sized).message() == "body limit exceeded");
  AnswerReader header(std::nullopt);
  CHECK(header.put("HTTP/1.1 200 OK\r\nA: " + std::string(100000, 'a')));
  AnswerReader chunk(std::nullopt);
  CHECK(chunk.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=" + std::string(100000, 'a')));
}
