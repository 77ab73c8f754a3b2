// The text form of slurm.conf(5): lines of KEY=VALUE, with comments, continued lines, quotes and Include. It
// does not know the meaning of any other key.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::cli::slurm {

struct Setting {
  /// The key as it is written, and in small letters: Slurm does not distinguish them.
  std::string name;
  std::string key;
  std::string value;
};

/// A line with its continuations; it has one setting or more.
struct ConfLine {
  /// `FILE:LINE`, for errors.
  std::string place;
  std::vector<Setting> settings;
};

/// Returns the text of a file. Throws Error.
using ReadFile = std::function<std::string(const std::string& path)>;

/// Upper bound of the text of all files together, in bytes.
inline constexpr std::size_t max_conf_text = std::size_t{64} << 20;

/// Reads a file and those that it includes, whose relative paths begin in the directory of the first file.
/// Throws Error EINVAL `FILE:LINE: ...` for text that Slurm refuses, for what it would cut short (a quote
/// without an end), and for files that include each other; EFBIG beyond max_conf_text; and what `read`
/// throws, with the place of the Include.
[[nodiscard]] std::vector<ConfLine> read_conf(const std::string& path, const ReadFile& read);

/// Throws Error EINVAL `PLACE: TEXT`.
[[noreturn]] void fail_at(const std::string& place, std::string_view text);

/// Returns a text with small letters in place of capital ones (ASCII).
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace resourced::cli::slurm
