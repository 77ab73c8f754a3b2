#include "os/sha256.hpp"

#include <array>

#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

namespace resourced::os {

std::string sha256(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  (void)crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace resourced::os
