// Files under tests/vectors: examples of the specifications, and data of the tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace resourced::test {

/// The content of a file, named by its path under tests/vectors.
inline std::string read_vector(const std::string& name) {
  std::ifstream in(std::filesystem::path(RESOURCED_VECTORS) / name, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read tests/vectors/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The sorted paths, under tests/vectors, of all files of a directory with this extension (`.yaml`).
inline std::vector<std::string> list_vectors(const std::string& directory, const std::string& extension) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RESOURCED_VECTORS) / directory)) {
    if (entry.path().extension() == extension) {
      names.push_back(directory + '/' + entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace resourced::test
