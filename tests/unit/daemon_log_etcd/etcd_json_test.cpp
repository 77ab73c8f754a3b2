// Requests and answers of etcd's JSON gateway; those of a real etcd are in tests/system/cluster.
#include "daemon/log/etcd/etcd_json.hpp"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using namespace requests;
using nlohmann::json;

const Request read_all = Transaction{{}, {Read{"a", "b", 2}}, {}};

std::string refusal(const Request& request, const std::string& body) {
  try {
    (void)decode_answer(request, "/p/", body);
    return "";
  } catch (const Error& error) {
    CHECK(error.errnum() == EPROTO);
    return error.what();
  }
}

}  // namespace

TEST_SUITE_BEGIN("etcd's JSON");

TEST_CASE("a transaction has its keys and values in base64 and its numbers as strings") {
  const EtcdRequest request =
      encode_request(Transaction{{{"leader", Guard::Field::created, 5}, {"head", Guard::Field::modified, 0}},
                                 {Put{"head", "7", 9}, Delete{"x", "y"}},
                                 {Read{"leader"}}},
                     "/p/");
  CHECK(request.target == "/v3/kv/txn");
  CHECK(json::parse(request.body) == json::parse(R"({
    "compare": [
      {"key": "L3AvbGVhZGVy", "target": "CREATE", "result": "EQUAL", "create_revision": "5"},
      {"key": "L3AvaGVhZA==", "target": "MOD", "result": "EQUAL", "mod_revision": "0"}],
    "success": [
      {"request_put": {"key": "L3AvaGVhZA==", "value": "Nw==", "lease": "9"}},
      {"request_delete_range": {"key": "L3AveA==", "range_end": "L3AveQ=="}}],
    "failure": [{"request_range": {"key": "L3AvbGVhZGVy"}}]})"));
}

TEST_CASE("an answer is decoded, where etcd leaves out what is zero or false") {
  const Outcome outcome =
      decode_answer(Transaction{{{"a", Guard::Field::created, 5}}, {}, {Read{"a"}, Read{"b"}}}, "/p/",
                    R"({"header":{"revision":"12"},"responses":[
          {"response_range":{"header":{"revision":"12"},"kvs":[
            {"key":"L3AvYQ==","create_revision":"3","mod_revision":"4","version":"2"}],"count":"1"}},
          {"response_range":{"header":{"revision":"12"}}}]})");
  const auto& done = std::get<TransactionDone>(outcome);
  CHECK_FALSE(done.held);
  CHECK(done.revision == 12);
  REQUIRE(done.found.size() == 2);
  REQUIRE(done.found[0].size() == 1);
  CHECK(done.found[0][0].key == "a");
  CHECK(done.found[0][0].value == "");
  CHECK(done.found[0][0].created == 3);
  CHECK(done.found[0][0].modified == 4);
  CHECK(done.found[1].empty());
}

TEST_CASE("base64 is read as etcd writes it, and nothing else") {
  const auto value = [](const std::string& text) {
    const Outcome outcome = decode_answer(read_all, "/p/", R"({"header":{"revision":"12"},"succeeded":true,
      "responses":[{"response_range":{"kvs":[{"key":"L3AvYQ==","create_revision":"3","mod_revision":"3",
      "value":")" + text + R"("}]}}]})");
    return std::get<TransactionDone>(outcome).found.at(0).at(0).value;
  };
  CHECK(value("") == "");
  CHECK(value("AA==") == std::string(1, '\0'));
  CHECK(value("YWI=") == "ab");
  CHECK(value("YWJj") == "abc");
  CHECK(value("+/+/////") == "\xfb\xff\xbf\xff\xff\xff");
  for (const char* text : {"A", "AA", "AAA", "AAA=A", "A===", "====", "==", "AB==", "AAB=", "A=A=", "AA=A",
                           "AAA-", "AAA ", "AA==AAAA", "AAAA\u00e9"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)value(text), Error);
  }
}

TEST_CASE("answers that are not those of etcd are refused") {
  for (
      const std::string body :
      {"", "[]", "{}", R"({"header":{"revision":12},"succeeded":true})",
       R"({"header":{"revision":"1x"},"succeeded":true,"responses":[{"response_range":{}}]})",
       R"({"header":{"revision":"12"},"succeeded":1,"responses":[{"response_range":{}}]})",
       R"({"header":{"revision":"12"},"succeeded":true})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[]})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{}]})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":7}}]})",
       // Base64 that is not whole, a key outside of the prefix, of the range, and without revisions.
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"L3AvY","create_revision":"3","mod_revision":"3"}]}}]})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"eA==","create_revision":"3","mod_revision":"3"}]}}]})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"L3AveA==","create_revision":"3","mod_revision":"3"}]}}]})",
       R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"L3AvYQ=="}]}}]})"}) {
    CAPTURE(body);
    CHECK(refusal(read_all, body) != "");
  }
  CHECK(refusal(KeepAlive{7}, R"({"result":{"ID":"8","TTL":"3"}})") != "");
  CHECK(refusal(Grant{Seconds(3)}, R"({"ID":"8","TTL":"-3"})") != "");
}

TEST_CASE("a keep-alive of a lease that has ended has no time left") {
  const Outcome outcome = decode_answer(KeepAlive{7}, "/p/", R"({"result":{"ID":"7"}})");
  CHECK(std::get<LeaseDone>(outcome).ttl == Seconds(0));
}

TEST_CASE("a failure says whether the request may have been carried out") {
  using Kind = EtcdFailure::Kind;
  const auto kind = [](unsigned status, const std::string& body) {
    return decode_failure(status, body).kind;
  };
  CHECK(kind(404, R"({"error":"etcdserver: requested lease not found","code":5})") == Kind::lease_has_ended);
  CHECK(kind(401, R"({"error":"etcdserver: invalid auth token","code":16})") == Kind::token);
  CHECK(kind(400, R"({"error":"etcdserver: user name is empty","code":3})") == Kind::token);
  CHECK(kind(403, R"({"error":"etcdserver: permission denied","code":7})") == Kind::refused);
  CHECK(kind(503, R"({"error":"etcdserver: no leader","code":14})") == Kind::unknown);
  CHECK(kind(500, "<html>") == Kind::unknown);
  CHECK(kind(408, R"({"error":"context deadline exceeded","code":4})") == Kind::unknown);
  CHECK(kind(429, R"({"error":"etcdserver: too many requests","code":8})") == Kind::unknown);
  CHECK(kind(429, R"({"error":"etcdserver: mvcc: database space exceeded","code":8})") == Kind::refused);
  CHECK(decode_failure(403, R"({"error":"etcdserver: permission denied","code":7})").why ==
        "etcdserver: permission denied");
}

TEST_CASE("a watch is of a range, and its lines tell changes, refusals and ends") {
  const Watch watch{"head", std::string("leader\0", 7), 9};
  const EtcdRequest request = encode_request(watch, "/p/");
  CHECK(request.target == "/v3/watch");
  CHECK(json::parse(request.body) == json::parse(R"({"create_request":
    {"key": "L3AvaGVhZA==", "range_end": "L3AvbGVhZGVyAA==", "start_revision": "9"}})"));
  const auto decoded = [&](const std::string& line) { return decode_watched(watch, line).value(); };
  CHECK(std::get<Changed>(decoded(R"({"result":{"header":{},"created":true}})")).revision == 8);
  CHECK(std::get<Changed>(decoded(R"({"result":{"events":[{"kv":{"key":"L3AvaGVhZA==","mod_revision":"12"}},
    {"type":"DELETE","kv":{"mod_revision":"11"}}]}})"))
            .revision == 12);
  CHECK(std::get<Refused>(decoded(R"({"result":{"canceled":true,"compact_revision":"20"}})")).why ==
        "changes up to revision 20 are compacted");
  CHECK(std::get<Refused>(decoded(R"({"result":{"created":true,"canceled":true,"cancel_reason":"no\n"}})"))
            .why == "no");
  CHECK(std::get<Unknown>(decoded(R"({"error":{"grpc_code":14,"message":"closing"}})")).why == "closing");
  // A sign of life.
  CHECK_FALSE(decode_watched(watch, R"({"result":{"header":{"revision":"12"}}})").has_value());
  std::string values = R"({"result":{"events":[)";
  for (int count = 0; count < 5000; ++count) values += "1,";
  for (const std::string& line :
       {std::string("x"), std::string("{}"), std::string(R"({"result":{"events":[{}]}})"),
        std::string(R"({"result":{"events":[{"kv":{"mod_revision":"8"}}]}})"), values + "1]}}"}) {
    CHECK_THROWS_AS((void)decode_watched(watch, line), Error);
  }
}

TEST_CASE("a token is printable text") {
  CHECK(decode_login(R"({"token":"abc.7"})") == "abc.7");
  CHECK_THROWS_AS((void)decode_login(R"({"token":"a\r\nb"})"), Error);
  CHECK_THROWS_AS((void)decode_login("{}"), Error);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
