// The holders of resources as a text in etcd.
#include "daemon/log/etcd/holders_json.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::daemon::log::etcd {

TEST_CASE("holders come back as they were written") {
  const std::vector<module::PartitionHolder> holders{
      {"", module::ByUser{1000}}, {"b \"x\"", module::ByKey{"login1"}}, {"c", module::ByAddress{"10.0.0.1"}}};
  CHECK(decode_holders(encode_holders(holders)) == holders);
  CHECK(encode_holders({}) == R"({"holders":[]})");
  CHECK(decode_holders(R"({"holders":[]})").empty());
}

TEST_CASE("another text is refused") {
  for (const char* text :
       {"", "[]", "{}", R"({"holders":1})", R"({"holders":[1]})", R"({"holders":[{"partition":"a"}]})",
        R"({"holders":[{"by":{"userid":1}}]})", R"({"holders":[{"partition":1,"by":{"userid":1}}]})",
        R"({"holders":[{"partition":"a","by":{"userid":-1}}]})",
        R"({"holders":[{"partition":"a","by":1}]})"}) {
    CAPTURE(text);
    try {
      (void)decode_holders(text);
      FAIL("taken");
    } catch (const Error& error) {
      CHECK(error.errnum() == EBADMSG);
      CHECK(std::string(error.what()) == "holders in etcd is not readable");
    }
  }
}

}  // namespace resourced::daemon::log::etcd
