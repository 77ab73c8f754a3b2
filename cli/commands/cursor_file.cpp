#include "cli/commands/cursor_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "os/file.hpp"

namespace resourced::cli::commands {

using proto::topics::EventNumber;

namespace {

EventNumber parse_cursor(const std::string& path, std::string_view text) {
  constexpr std::size_t depth = 1;
  const auto read = json_text::read_json(text, depth, json_text::JsonManners::strict);
  if (const auto* cursor = std::get_if<nlohmann::json>(&read); cursor != nullptr && cursor->is_object()) {
    const auto after = cursor->find("after");
    if (after != cursor->end() && after->is_number_unsigned()) return after->get<EventNumber>();
  }
  throw Error(EINVAL, fmt::format("{}: not a cursor of eventlog; remove the file to begin anew", path));
}

}  // namespace

CursorFile::CursorFile(std::string path) : path_(std::move(path)) {
  constexpr std::size_t most = 4096;
  try {
    number_ = parse_cursor(path_, os::read_file(path_, most));
  } catch (const Error& error) {
    if (error.errnum() != ENOENT) throw;
  }
  // Detect an unusable path before events are printed that a later run would print again.
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0) os::fail(path_, errno);
}

void CursorFile::write(EventNumber number) {
  if (number_ == number) return;
  const std::string next = fmt::format("{}.{}", path_, ::getpid());
  const std::string text = fmt::format("{{\"after\":{}}}\n", number);
  try {
    os::write_all(os::open_file(next, O_WRONLY | O_CREAT | O_TRUNC, 0666), text, next);
    os::sync(next);
    if (std::rename(next.c_str(), path_.c_str()) != 0) os::fail(path_, errno);
  } catch (const Error&) {
    ::unlink(next.c_str());
    throw;
  }
  number_ = number;
}

}  // namespace resourced::cli::commands
