#include "config/accounts.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {
namespace {

constexpr std::size_t first_buffer = 4096;
// A group of very many members; what needs more is no group that a person keeps.
constexpr std::size_t largest_buffer = std::size_t{16} << 20;

std::optional<std::uint32_t> number(const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // The largest number stands for "none" in system calls.
  if (error != std::errc() || stop != end || value == std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return value;
}

// Asks one of the re-entrant functions of the C library, with as much room as it wants.
template <class Entry, class Ask>
bool look_up(const Ask& ask, Entry& entry, std::vector<char>& buffer, const std::string& what) {
  Entry* found = nullptr;
  for (buffer.resize(first_buffer);; buffer.resize(buffer.size() * 4)) {
    const int failure = ask(&entry, buffer.data(), buffer.size(), &found);
    if (failure == ERANGE && buffer.size() < largest_buffer) continue;
    // Some databases report an unknown name by one of these.
    const bool unknown = failure == ENOENT || failure == ESRCH || failure == EBADF || failure == EPERM;
    if (failure != 0 && !unknown)
      throw Error(failure, fmt::format("cannot look up {}: {}", what, std::strerror(failure)));
    return found != nullptr;
  }
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  passwd entry{};
  std::vector<char> buffer;
  const auto ask = [&](passwd* place, char* room, std::size_t size, passwd** found) {
    return getpwnam_r(name.c_str(), place, room, size, found);
  };
  if (!look_up(ask, entry, buffer, fmt::format("user {}", resourced::quoted(name)))) return std::nullopt;
  return entry.pw_uid;
}

}  // namespace

std::uint32_t find_user(const std::string& name) {
  if (const auto id = number(name)) return *id;
  if (const auto id = user_id(name)) return *id;
  throw Error(EINVAL, fmt::format("unknown user: {}", resourced::quoted(name)));
}

GroupAccount find_group(const std::string& name) {
  group entry{};
  std::vector<char> buffer;
  const auto id = number(name);
  const auto ask = [&](group* place, char* room, std::size_t size, group** found) {
    return id ? getgrgid_r(*id, place, room, size, found)
              : getgrnam_r(name.c_str(), place, room, size, found);
  };
  GroupAccount account;
  if (!look_up(ask, entry, buffer, fmt::format("group {}", resourced::quoted(name)))) {
    // A number needs no entry to be somebody's group.
    if (!id) throw Error(EINVAL, fmt::format("unknown group: {}", resourced::quoted(name)));
    account.id = *id;
    return account;
  }
  account.id = entry.gr_gid;
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (const auto uid = user_id(*member)) account.members.push_back(*uid);
  }
  return account;
}

}  // namespace resourced::config
