// Names of users by uid, as the user database of this machine has them. It may be a server that does not
// answer for long, so it is asked on a thread that nobody waits for: a name is known some time after it was
// first asked for.
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
  /// The most uids of one question.
  static constexpr std::size_t most = 1024;

  /// `ask` asks the user database of this machine where it is null.
  explicit UserNames(Ask ask = nullptr);

  /// The names of these users that are known now, and at most ten minutes old. Others are asked for. Throws
  /// Error EINVAL for more than `most`.
  [[nodiscard]] std::map<std::uint32_t, std::string> find(const text::IdSet& ids, SteadyTime now);

 private:
  struct Link;
  Ask ask_;
  /// Shared with the thread, which may outlive this.
  std::shared_ptr<Link> link_;
};

}  // namespace resourced::daemon::service
