#include "cli/slurm/conf_lines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::slurm {

namespace {

constexpr std::string_view white_space = " \t\r\v\f";
constexpr std::size_t max_include_depth = 16;

void skip_white_space(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
}

/// Returns the line up to its comment. A backslash before a # makes it a character, and quotes do not.
std::string_view without_comment(std::string_view line) {
  bool is_escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !is_escaped) return line.substr(0, i);
    is_escaped = line[i] == '\\' && !is_escaped;
  }
  return line;
}

/// Removes the backslash at the end of a line that the next one continues. Returns false for any other line.
bool remove_continuation(std::string_view& line) {
  const std::size_t last = line.find_last_not_of(white_space);
  if (last == std::string_view::npos || line[last] != '\\') return false;
  const std::size_t before = line.find_last_not_of('\\', last);
  const std::size_t count = before == std::string_view::npos ? last + 1 : last - before;
  if (count % 2 == 0) return false;
  line = line.substr(0, last);
  return true;
}

/// Returns the text without the backslashes that escape another character.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

/// Takes a value from the front of a text: up to white space, or in quotes.
std::string take_value(std::string_view& text, const std::string& place) {
  const bool is_quoted = text.starts_with('"');
  if (is_quoted) text.remove_prefix(1);
  const std::size_t end = is_quoted ? text.find('"') : std::min(text.find_first_of(white_space), text.size());
  if (end == std::string_view::npos)
    fail_at(place, "a quote without an end; # begins a comment also between quotes");
  std::string value(text.substr(0, end));
  text.remove_prefix(is_quoted ? end + 1 : end);
  if (!text.empty() && white_space.find(text.front()) == std::string_view::npos)
    fail_at(place, fmt::format("expected a blank behind the quotes of {}", text::quoted(value)));
  return value;
}

std::vector<Setting> read_settings(std::string_view text, const std::string& place) {
  constexpr std::string_view key_characters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  std::vector<Setting> settings;
  for (skip_white_space(text); !text.empty(); skip_white_space(text)) {
    const std::string_view begin = text;
    Setting setting;
    setting.name = text.substr(0, text.find_first_not_of(key_characters));
    setting.key = lower_case(setting.name);
    text.remove_prefix(setting.name.size());
    skip_white_space(text);
    if (setting.name.empty() || !text.starts_with('='))
      fail_at(place, fmt::format("expected KEY=VALUE, found {}", text::quoted(begin)));
    text.remove_prefix(1);
    skip_white_space(text);
    setting.value = take_value(text, place);
    settings.push_back(std::move(setting));
  }
  return settings;
}

/// Returns the path behind `Include`; nothing for another line.
std::optional<std::string> included_path(std::string_view line) {
  constexpr std::string_view word = "include";
  skip_white_space(line);
  if (lower_case(line.substr(0, word.size())) != word) return std::nullopt;
  line.remove_prefix(word.size());
  if (line.empty() || white_space.find(line.front()) == std::string_view::npos) return std::nullopt;
  skip_white_space(line);
  return std::string(line.substr(0, line.find_last_not_of(white_space) + 1));
}

class FileReader {
 public:
  FileReader(const std::string& path, const ReadFile& read)
      : directory_(path.substr(0, path.rfind('/') + 1)), read_(read) {}

  void read(const std::string& path, std::size_t depth) {
    const std::string text = read_(path);
    read_bytes_ += text.size();
    if (read_bytes_ > max_conf_text)
      throw Error(EFBIG, fmt::format("{}: more than {} bytes in all files", path, max_conf_text));
    std::size_t number = 0;
    std::size_t first = 0;
    std::string whole;
    for (std::string_view rest = text; !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++number;
      if (first == 0) first = number;
      line = without_comment(line);
      const bool continues = remove_continuation(line);
      whole += line;
      if (continues && !rest.empty()) continue;
      take_line(without_escapes(whole), fmt::format("{}:{}", path, first), depth);
      whole.clear();
      first = 0;
    }
  }

  std::vector<ConfLine> lines;

 private:
  void take_line(const std::string& line, const std::string& place, std::size_t depth) {
    if (line.find_first_not_of(white_space) == std::string::npos) return;
    if (json_text::find_invalid_utf8(line)) fail_at(place, "the line is not UTF-8");
    const auto path = included_path(line);
    if (!path) {
      lines.push_back({place, read_settings(line, place)});
      return;
    }
    if (depth == max_include_depth) fail_at(place, "files include each other, or are too deep");
    try {
      read(path->starts_with('/') ? *path : directory_ + *path, depth + 1);
    } catch (const Error& error) {
      // An error inside of the file has a place of its own.
      if (error.errnum() == EINVAL || error.errnum() == EFBIG) throw;
      throw Error(error.errnum(), fmt::format("{}: {}", place, error.what()));
    }
  }

  std::string directory_;
  const ReadFile& read_;
  std::size_t read_bytes_ = 0;
};

}  // namespace

std::vector<ConfLine> read_conf(const std::string& path, const ReadFile& read) {
  FileReader reader(path, read);
  reader.read(path, 0);
  return std::move(reader.lines);
}

void fail_at(const std::string& place, std::string_view text) {
  throw Error(EINVAL, fmt::format("{}: {}", place, text));
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace resourced::cli::slurm
