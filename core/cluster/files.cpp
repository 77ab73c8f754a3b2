#include "core/cluster/files.hpp"

#include <cstddef>

#include <nlohmann/json.hpp>

namespace resourced::cluster {

using nlohmann::json;

json encode_files(const FileDigests& digests) {
  json object = json::object();
  for (std::size_t i = 0; i < file_groups.size(); ++i) {
    if (!digests[i].empty()) object[std::string(file_groups[i])] = digests[i];
  }
  return object;
}

FileDigests read_files(const json& value) {
  constexpr std::size_t most = 64;
  FileDigests digests;
  if (!value.is_object()) return digests;
  for (std::size_t i = 0; i < file_groups.size(); ++i) {
    const auto found = value.find(std::string(file_groups[i]));
    if (found == value.end() || !found->is_string()) continue;
    const auto& digest = found->get_ref<const std::string&>();
    if (digest.size() <= most) digests[i] = digest;
  }
  return digests;
}

std::optional<std::vector<std::string>> differing_files(const FileDigests& one, const FileDigests& other) {
  bool is_known = false;
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < file_groups.size(); ++i) {
    if (one[i].empty() || other[i].empty()) continue;
    is_known = true;
    if (one[i] != other[i]) groups.emplace_back(file_groups[i]);
  }
  return is_known ? std::optional(std::move(groups)) : std::nullopt;
}

}  // namespace resourced::cluster
