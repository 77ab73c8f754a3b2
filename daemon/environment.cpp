#include "daemon/environment.hpp"

#include <cstdlib>

namespace resourced::daemon {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace resourced::daemon
