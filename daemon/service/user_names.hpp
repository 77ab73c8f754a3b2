// Names of users by uid from the user database of this machine. The database may be a server that does not
// answer for long, so a detached thread asks it: a name is known some time after it was first asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::daemon::service {

class UserNames {
 public:
  using Ask = std::function<std::optional<std::string>(std::uint32_t)>;
  /// Maximum number of uids of one question.
  static constexpr std::size_t most = 1024;

  /// A null `ask` stands for the user database of this machine.
  explicit UserNames(Ask ask = nullptr);

  /// Returns the names of these users that are known now, and at most ten minutes old; asks for the others.
  /// Throws Error EINVAL for more than `most`.
  [[nodiscard]] std::map<std::uint32_t, std::string> find(const text::IdSet& ids, SteadyTime now);

 private:
  struct Link;
  Ask ask_;
  /// Shared with the thread, which may outlive this object.
  std::shared_ptr<Link> link_;
};

}  // namespace resourced::daemon::service
