#include "harness/temp_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace resourced::e2e {

namespace fs = std::filesystem;

TempDir::TempDir(const fs::path& parent) {
  std::string name = (parent.empty() ? fs::temp_directory_path() : fs::absolute(parent)) / "resourced-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TempDir::write(std::string_view name, std::string_view text) const {
  const fs::path target = path_ / name;
  const fs::path draft = target.string() + ".draft";
  std::ofstream(draft, std::ios::binary) << text;
  fs::rename(draft, target);
  return target;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace resourced::e2e
