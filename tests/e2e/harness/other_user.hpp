// Another user of this machine, as far as sockets can tell: what this thread connects, and the threads that
// it starts, carry the other uid and gid while one of these lives. Takes root.
#pragma once

#include <cstdint>

namespace resourced::e2e {

/// Whether there can be one. Tests that cannot have it say so and pass.
[[nodiscard]] bool can_be_other_users();

class OtherUser {
 public:
  explicit OtherUser(std::uint32_t uid = 65534, std::uint32_t gid = 65534);
  ~OtherUser();
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
};

}  // namespace resourced::e2e
