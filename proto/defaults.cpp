// Default addresses and directories, see defaults.hpp.
#include "proto/defaults.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace resourced::proto {

namespace {

std::optional<std::string> directory(const Environment& environment, const std::string& variable,
                                     std::string_view below = {}) {
  auto value = environment(variable);
  if (!value || !value->starts_with('/')) {
    return std::nullopt;
  }
  return value->append(below);
}

/// A variable of systemd's, which lists several directories if a unit has them.
std::optional<std::string> first_directory(const Environment& environment, const std::string& variable) {
  auto value = directory(environment, variable);
  if (value) {
    value->erase(std::min(value->find(':'), value->size()));
  }
  return value;
}

/// In the order in which they are preferred; never empty.
std::vector<std::string> runtime_directories(const Environment& environment) {
  std::vector<std::string> directories;
  if (auto own = first_directory(environment, "RUNTIME_DIRECTORY")) {
    directories.push_back(*own);
  }
  if (auto user = directory(environment, "XDG_RUNTIME_DIR", "/resourced")) {
    directories.push_back(*user);
  }
  directories.emplace_back("/run/resourced");
  return directories;
}

}  // namespace

std::string runtime_directory(const Environment& environment) {
  return runtime_directories(environment).front();
}

std::string default_bus_uri(const Environment& environment) {
  return "ipc://" + runtime_directory(environment) + "/bus";
}

std::string default_local_uri(const Environment& environment) {
  return "local://" + runtime_directory(environment) + "/local";
}

std::string client_uri(const Environment& environment, const FileTest& exists, const FileTest& may_connect) {
  if (const auto uri = environment("RESOURCED_URI"); uri && !uri->empty()) {
    return *uri;
  }
  for (const FileTest& fits : {may_connect, exists}) {
    for (const auto& directory : runtime_directories(environment)) {
      if (fits(directory + "/bus")) return "ipc://" + directory + "/bus";
      if (fits(directory + "/local")) return "local://" + directory + "/local";
    }
  }
  return default_bus_uri(environment);
}

std::string state_directory(const Environment& environment) {
  if (const auto own = first_directory(environment, "STATE_DIRECTORY")) {
    return *own;
  }
  if (const auto user = directory(environment, "XDG_STATE_HOME", "/resourced")) {
    return *user;
  }
  if (const auto home = directory(environment, "HOME", "/.local/state/resourced")) {
    return *home;
  }
  throw Error(EINVAL, "no state directory: none of $STATE_DIRECTORY, $XDG_STATE_HOME and $HOME is set");
}

}  // namespace resourced::proto
