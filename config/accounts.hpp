// Users and groups of this machine by name or number, as its user database has them now. A membership that
// changes later is seen when the configuration is read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace resourced::config {

/// Throws Error EINVAL that names the user, or the errno of a database that cannot be asked.
[[nodiscard]] std::uint32_t find_user(const std::string& name);

struct GroupAccount {
  std::uint32_t id = 0;
  /// Uids of the members that the database lists; not those whose primary group it is.
  std::vector<std::uint32_t> members;
};
/// Throws Error as find_user() does. A listed member that does not exist is passed over.
[[nodiscard]] GroupAccount find_group(const std::string& name);

}  // namespace resourced::config
