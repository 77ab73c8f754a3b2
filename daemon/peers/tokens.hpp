// The tokens of HTTP clients, and the file that lists them: a line for each, `NAME ROLE[,ROLE...] SHA256`.
// The file has a hash of each token, so that reading it does not give access. A token is random, and long
// enough that it cannot be found by its hash.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/access.hpp"

namespace resourced::daemon::peers {

struct Token {
  std::string name;    ///< unique
  std::string digest;  ///< SHA-256 in lower-case hexadecimal digits; unique
  config::Roles roles;
};

class Tokens {
 public:
  static constexpr std::size_t max_tokens = 1000;

  Tokens() = default;
  /// Reads the text of a file. Throws Error EINVAL `FILE:LINE: ...` that quotes no digest.
  Tokens(std::string_view text, const std::string& file);
  /// Reads a file. Throws Error that names it: EACCES if anybody but its owner may read or write it, or if
  /// its owner is neither the user of this process nor root; otherwise as os::read_file().
  [[nodiscard]] static Tokens load(const std::string& path);

  /// Returns a token; null for an unknown digest. The time does not depend on how much of a digest is right.
  [[nodiscard]] const Token* find(std::string_view digest) const;
  [[nodiscard]] const std::vector<Token>& all() const noexcept { return tokens_; }

 private:
  std::vector<Token> tokens_;
  /// Indices of tokens_.
  std::unordered_map<std::string, std::size_t> by_digest_;
};

}  // namespace resourced::daemon::peers
