// Texts that may be keys: the example of ZeroMQ RFC 32, and variations of it.
#include "core/text/z85.hpp"

#include <string>

#include <doctest/doctest.h>

using resourced::text::is_z85_key;

TEST_CASE("40 characters of Z85 are a key, and nothing else is") {
  // The public key of the example in ZeroMQ RFC 32.
  const std::string key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
  CHECK(is_z85_key(key));
  CHECK(is_z85_key(std::string(40, '0')));
  CHECK_FALSE(is_z85_key(""));
  CHECK_FALSE(is_z85_key(key.substr(1)));
  CHECK_FALSE(is_z85_key(key + "0"));
  for (const char c : {'"', '\\', ' ', '\n', '\0', '~', '\xe9'}) {
    CAPTURE(c);
    CHECK_FALSE(is_z85_key(key.substr(0, 39) + c));
  }
  // "%nSc0" is 2^32, the first number that does not fit into four bytes; "%nSb#" is the number before it.
  CHECK_FALSE(is_z85_key("#####" + key.substr(5)));
}
