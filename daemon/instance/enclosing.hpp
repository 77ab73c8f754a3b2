// The enclosing instance, in which this one is a job: it has allocated this instance's resources, and sets
// their expiration.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "client/connection.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/time.hpp"
#include "os/loop.hpp"

namespace resourced::daemon::instance {

class Enclosing {
 public:
  /// Makes a connection; `uri` is the attribute parent-uri, `job` the attribute jobid (RFC 19). Throws Error
  /// EINVAL for a job id that cannot be read, and as client::Connection does.
  Enclosing(const std::string& uri, const std::string& job);

  /// Requests the R of the job, and waits for it. With `watches` its changes are requested, too. Throws
  /// Error.
  [[nodiscard]] rset::ResourceSet read(bool watches);

  /// Calls `changed` in the loop with each new expiration from here on, if read() has requested changes. The
  /// changes are requested again, with growing pauses, when the connection or the stream ends.
  void follow(boost::asio::io_context& loop, std::function<void(WallTime)> changed);

 private:
  void watch();
  void on_update(const client::Response& response);
  void ask_again(const std::string& why);
  void ask_once();
  /// Calls `read` on a response, and keeps an error that it throws in `failure_`.
  void take(const std::function<void()>& read);

  static constexpr client::Milliseconds first_pause{100};
  static constexpr client::Milliseconds longest_pause{60'000};

  client::Connection connection_;
  std::uint64_t job_;
  std::optional<rset::ResourceSet> resources_;
  std::optional<Error> failure_;
  std::function<void(WallTime)> changed_;
  std::unique_ptr<os::Watch> watch_;
  /// The pause before the next attempt; first_pause if none has failed since the last update.
  client::Milliseconds pause_ = first_pause;
};

/// Returns the R of a job in the ranks of the instance that runs as this job: in the order of its brokers if
/// each has a different host, otherwise in the order of R. Cores are numbered from 0, as in the topologies
/// that its brokers see, which are restricted to the cores of the job. Nothing if R has another number of
/// ranks.
[[nodiscard]] std::optional<rset::ResourceSet> in_ranks_of(const rset::ResourceSet& allocated,
                                                           const text::Hostlist& brokers);

}  // namespace resourced::daemon::instance
