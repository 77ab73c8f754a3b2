// A directory of a test's own, below $TMPDIR; gone with everything in it at the end.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace resourced::e2e {

class TempDir {
 public:
  /// Below `parent` if given: where the disk matters.
  explicit TempDir(const std::filesystem::path& parent = {});
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Writes a file, replacing it as a whole, and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace resourced::e2e
