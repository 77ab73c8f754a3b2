// A directory for one test, below $TMPDIR, with a unique name. The destructor removes it with its content.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace resourced::test {

class TempDir {
 public:
  /// Creates the directory below `parent` if given: for tests that need a certain disk.
  explicit TempDir(const std::filesystem::path& parent = {})
      : path_((parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::absolute(parent)) /
              "resourced-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The path of a name in this directory, which need not exist.
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return std::filesystem::path(path_) / name;
  }
  [[nodiscard]] std::string file(std::string_view name) const { return *this / name; }

  /// Creates a file or replaces it atomically, and creates its parent directories. Returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    const std::string target = file(name);
    const std::string draft = target + ".draft";
    std::filesystem::create_directories(std::filesystem::path(target).parent_path());
    std::ofstream out(draft, std::ios::binary);
    out << content;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + draft);
    std::filesystem::rename(draft, target);
    return target;
  }

 private:
  std::string path_;
};

[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace resourced::test
