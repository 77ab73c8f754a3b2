// Base64, by the test vectors of RFC 4648 (section 10) and against texts that nobody writes.
#include "core/text/base64.hpp"

#include <string>

#include <doctest/doctest.h>

namespace resourced::text {
namespace {

TEST_CASE("base64 is that of RFC 4648") {
  struct Row {
    const char* bytes;
    const char* text;
  };
  for (const Row& row : {Row{"", ""},
                         {"f", "Zg=="},
                         {"fo", "Zm8="},
                         {"foo", "Zm9v"},
                         {"foob", "Zm9vYg=="},
                         {"fooba", "Zm9vYmE="},
                         {"foobar", "Zm9vYmFy"}}) {
    CAPTURE(row.text);
    CHECK(encode_base64(row.bytes) == row.text);
    CHECK(decode_base64(row.text) == row.bytes);
  }
}

TEST_CASE("all bytes come back from base64") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    CAPTURE(i);
    CHECK(decode_base64(encode_base64(bytes)) == bytes);
    bytes += static_cast<char>(i);
  }
  CHECK(encode_base64("\xfb\xff\xbf") == "+/+/");
}

TEST_CASE("a text that is not whole base64 has no bytes") {
  for (const char* const text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zm8=Zm8=", "Zm9v\n",
                                 "Zm9\xc3", "Zm 8", "-_-_", "Zh==", "Zm9="}) {
    CAPTURE(text);
    CHECK_FALSE(decode_base64(text));
  }
}

}  // namespace
}  // namespace resourced::text
