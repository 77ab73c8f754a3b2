#include "core/text/job_id.hpp"

#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::text {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> read_base58(std::string_view digits) {
  constexpr std::string_view alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : digits) {
    const std::size_t place = alphabet.find(digit);
    if (place == std::string_view::npos || value > (largest - place) / alphabet.size()) return std::nullopt;
    value = value * alphabet.size() + place;
  }
  return value;
}

std::optional<std::uint64_t> read_dotted(std::string_view groups) {
  constexpr std::size_t digits = 4;
  constexpr std::size_t length = 4 * digits + 3;
  if (groups.size() != length) return std::nullopt;
  std::string joined;
  for (std::size_t at = 0; at < length; at += digits + 1) {
    if (at > 0 && groups[at - 1] != '.') return std::nullopt;
    joined += groups.substr(at, digits);
  }
  return whole_number<std::uint64_t>(joined, 16);
}

std::optional<std::uint64_t> read(std::string_view text) {
  constexpr std::string_view mark = "ƒ";
  constexpr std::string_view key = "job.";
  constexpr std::string_view hexadecimal = "0x";
  if (text.starts_with(mark)) return read_base58(text.substr(mark.size()));
  if (text.starts_with('f')) return read_base58(text.substr(1));
  if (text.starts_with(key)) return read_dotted(text.substr(key.size()));
  if (text.starts_with(hexadecimal)) return whole_number<std::uint64_t>(text.substr(hexadecimal.size()), 16);
  if (text.find('.') != std::string_view::npos) return read_dotted(text);
  return whole_number<std::uint64_t>(text, 10);
}

}  // namespace

std::uint64_t parse_job_id(std::string_view text) {
  if (const auto id = read(text)) return *id;
  throw Error(EINVAL, fmt::format("not a job id: {}", quoted(text)));
}

}  // namespace resourced::text
