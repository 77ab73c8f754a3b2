// Connects to sockets as another user: while an OtherUser lives, this thread and the threads that it starts
// have the other uid and gid. Requires root.
#pragma once

#include <cstdint>

namespace resourced::e2e {

/// Whether an OtherUser is possible. If not, tests print what they need, and pass.
[[nodiscard]] bool can_be_other_users();

class OtherUser {
 public:
  explicit OtherUser(std::uint32_t uid = 65534, std::uint32_t gid = 65534);
  ~OtherUser();
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
};

}  // namespace resourced::e2e
