// Texts of batches, compressed.
#include "daemon/log/etcd/packed_text.hpp"

#include <string>

#include <doctest/doctest.h>

namespace resourced::daemon::log::etcd {
namespace {

constexpr std::size_t kibibyte = 1024;

std::string lines(std::size_t bytes) {
  std::string text;
  for (int number = 0; text.size() < bytes; ++number)
    text += R"({"name":"drain","sequence":)" + std::to_string(number) + "}\n";
  text.resize(bytes);
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("packed text");

TEST_CASE("a text of some kilobytes takes much less, and comes back whole") {
  for (const std::size_t bytes : {4 * kibibyte, 60 * kibibyte, 256 * kibibyte}) {
    const std::string packed = pack(lines(bytes));
    CHECK(packed.size() < bytes / 3);
    CHECK(unpacked_size(packed) == bytes);
    CHECK(unpack(packed) == lines(bytes));
  }
}

TEST_CASE("a short text and a very long one stay as they are") {
  for (const std::size_t bytes : {std::size_t{0}, kibibyte, 256 * kibibyte + 1}) {
    CHECK(pack(lines(bytes)) == lines(bytes));
    CHECK(unpacked_size(lines(bytes)) == bytes);
    CHECK(unpack(lines(bytes)) == lines(bytes));
  }
}

TEST_CASE("a broken text is refused, and none claims more memory than it may have") {
  const std::string packed = pack(lines(8 * kibibyte));
  for (std::size_t size = 4; size < packed.size(); ++size) CHECK_FALSE(unpack(packed.substr(0, size)));
  CHECK_FALSE(unpack(packed + "x"));
  CHECK_FALSE(unpack("lz4 \n"));
  CHECK_FALSE(unpack("lz4 -1\n"));
  CHECK_FALSE(unpack("lz4 99999999999999999999\n"));
  const std::string bomb = "lz4 1073741824\n" + std::string(kibibyte, '\xff');
  CHECK_FALSE(unpack(bomb));
  CHECK(unpacked_size(bomb) == bomb.size());
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
