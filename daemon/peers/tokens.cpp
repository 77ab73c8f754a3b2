#include "daemon/peers/tokens.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <sodium/utils.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "os/file.hpp"
#include "os/sha256.hpp"

namespace resourced::daemon::peers {
namespace {

constexpr std::size_t digest_size = 64;
constexpr std::size_t max_file = std::size_t{256} << 10;
constexpr std::size_t max_name = 64;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blanks = " \t\r";
  std::size_t at = line.find_first_not_of(blanks);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

config::Roles roles_of(std::string_view text) {
  config::Roles roles;
  while (true) {
    const std::size_t comma = text.find(',');
    const config::Role role = config::parse_role(text.substr(0, comma));
    if (role == config::Role::agent) throw Error(EINVAL, "an agent reads nothing, so its token has no use");
    roles.push_back(role);
    if (comma == std::string_view::npos) return roles;
    text.remove_prefix(comma + 1);
  }
}

bool is_digest(std::string_view text) {
  return text.size() == digest_size && std::ranges::all_of(text, [](char digit) {
           return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
         });
}

bool is_name(std::string_view text) {
  return text.size() <= max_name && std::ranges::all_of(text, [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_';
         });
}

Token read_line(const std::vector<std::string_view>& words) {
  constexpr std::size_t columns = 3;
  if (words.size() != columns) throw Error(EINVAL, "is not NAME ROLE SHA256");
  if (!is_name(words[0])) {
    throw Error(EINVAL, fmt::format("{} is not a name of up to {} letters, digits, '-', '.' and '_'",
                                    text::quoted(words[0]), max_name));
  }
  if (words[2] == os::sha256("")) throw Error(EINVAL, "the third word is the hash of an empty token");
  if (!is_digest(words[2])) {
    throw Error(EINVAL, fmt::format("the third word is not a SHA-256 of {} hexadecimal digits: "
                                    "printf %s \"$TOKEN\" | sha256sum",
                                    digest_size));
  }
  return {std::string(words[0]), std::string(words[2]), roles_of(words[1])};
}

}  // namespace

Tokens::Tokens(std::string_view text, const std::string& file) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    try {
      Token token = read_line(words);
      const auto same = [&token](const Token& other) {
        return other.name == token.name || other.digest == token.digest;
      };
      if (std::ranges::any_of(tokens_, same))
        throw Error(EINVAL, "repeats the name or the token of a line above");
      if (tokens_.size() == max_tokens) throw Error(EINVAL, fmt::format("more than {} tokens", max_tokens));
      tokens_.push_back(std::move(token));
      by_digest_.emplace(tokens_.back().digest, tokens_.size() - 1);
    } catch (const Error& error) {
      throw Error(EINVAL, fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
}

Tokens Tokens::load(const std::string& path) {
  const os::InputFile file(path);
  if (!S_ISREG(file.status().st_mode)) throw Error(EINVAL, path + ": is not a regular file");
  file.require_secret();
  const auto text = file.read(max_file);
  if (!text) throw Error(EFBIG, fmt::format("{}: has more than {} bytes", path, max_file));
  return {*text, path};
}

const Token* Tokens::find(std::string_view digest) const {
  if (digest.size() != digest_size) return nullptr;
  // The look-up is safe: its time depends on the hash of the sent text, which reveals nothing about a token.
  const auto found = by_digest_.find(std::string(digest));
  if (found == by_digest_.end()) return nullptr;
  const Token& token = tokens_[found->second];
  return sodium_memcmp(token.digest.data(), digest.data(), digest_size) == 0 ? &token : nullptr;
}

}  // namespace resourced::daemon::peers
