#include "daemon/log/etcd/packed_text.hpp"

#include <charconv>

#include <fmt/format.h>
#include <lz4.h>

namespace resourced::daemon::log::etcd {
namespace {

// The beginning of a packed text. A text that is not packed is JSON, which begins with a brace.
constexpr std::string_view mark = "lz4 ";
constexpr std::size_t least = std::size_t{4} << 10;
// Maximum size of a text that is packed: it is compressed within half a millisecond.
constexpr std::size_t most = std::size_t{256} << 10;

struct Block {
  std::size_t bytes = 0;
  std::string_view data;
};

/// Reads the head of a packed text; nothing for a text without a whole first line.
std::optional<Block> read_block(std::string_view packed) {
  Block block;
  const char* const begin = packed.data() + mark.size();
  const char* const end = packed.data() + packed.size();
  const auto [after, error] = std::from_chars(begin, end, block.bytes);
  if (error != std::errc() || after == end || *after != '\n') return std::nullopt;
  block.data = packed.substr(static_cast<std::size_t>(after + 1 - packed.data()));
  return block;
}

}  // namespace

std::string pack(std::string text) {
  if (text.size() < least || text.size() > most) return text;
  std::string packed = fmt::format("{}{}\n", mark, text.size());
  const std::size_t header = packed.size();
  packed.resize(header + static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(text.size()))));
  const int size = LZ4_compress_default(text.data(), packed.data() + header, static_cast<int>(text.size()),
                                        static_cast<int>(packed.size() - header));
  if (size <= 0 || header + static_cast<std::size_t>(size) >= text.size()) return text;
  packed.resize(header + static_cast<std::size_t>(size));
  packed.shrink_to_fit();
  return packed;
}

std::size_t unpacked_size(std::string_view packed) {
  if (!packed.starts_with(mark)) return packed.size();
  const auto block = read_block(packed);
  return block && block->bytes <= most ? block->bytes : packed.size();
}

std::optional<std::string> unpack(std::string_view packed) {
  if (!packed.starts_with(mark)) return std::string(packed);
  const auto block = read_block(packed);
  // A block of LZ4 is at most a little larger than its text, so its size fits into an int.
  if (!block || block->bytes > most || block->data.size() > 2 * most) return std::nullopt;
  std::string text(block->bytes, '\0');
  const int size = LZ4_decompress_safe(block->data.data(), text.data(), static_cast<int>(block->data.size()),
                                       static_cast<int>(text.size()));
  if (size < 0 || static_cast<std::size_t>(size) != text.size()) return std::nullopt;
  return text;
}

}  // namespace resourced::daemon::log::etcd
