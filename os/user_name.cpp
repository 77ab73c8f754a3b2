#include "os/user_name.hpp"

#include <cerrno>
#include <vector>

#include <pwd.h>

namespace resourced::os {

std::optional<std::string> user_name(std::uint32_t id) {
  constexpr std::size_t first_buffer = 1024;
  constexpr std::size_t largest_buffer = std::size_t{1} << 20U;
  for (std::vector<char> buffer(first_buffer);; buffer.resize(buffer.size() * 4)) {
    passwd entry{};
    passwd* found = nullptr;
    const int failure = getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found);
    if (failure == ERANGE && buffer.size() < largest_buffer) continue;
    if (failure != 0 || found == nullptr) return std::nullopt;
    return std::string(found->pw_name);
  }
}

}  // namespace resourced::os
