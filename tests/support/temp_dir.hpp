// A directory of a test's own, with a unique name, that goes away with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace resourced::test {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "resourced-test-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("cannot make the directory " + path_);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The path of a name in this directory, whether it is there or not.
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + '/' + std::string(name); }

  /// Makes or replaces a file, and the directories above it. Returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    const std::string target = file(name);
    std::filesystem::create_directories(std::filesystem::path(target).parent_path());
    std::ofstream out(target, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + target);
    return target;
  }

 private:
  std::string path_;
};

}  // namespace resourced::test
