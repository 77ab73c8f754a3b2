// resource.status-at, the states at a past time, and resource.report, how long states lasted. The reading
// thread of the log finds and encodes both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class PastTopics {
 public:
  /// Maximum number of questions that wait at the same time: of one uid or key, and of all. Each takes the
  /// reading thread some tens of milliseconds, and other readers of the log have their turn in between.
  static constexpr std::size_t most_of_one = 4;
  static constexpr std::size_t most = 32;

  /// The same limits for reports, each of which takes seconds, and some hundred bytes for each target.
  /// Reports let questions go first.
  static constexpr std::size_t most_reports_of_one = 1;
  static constexpr std::size_t most_reports = 2;

  PastTopics(const Executor& executor, Requests& requests, log::EventLog& log)
      : executor_(executor), requests_(requests), log_(log) {}

  void status_at(const Call& call);
  void report(const Call& call);
  /// Called when a request has ended.
  void release(proto::RequestKey key);

 private:
  struct Question {
    std::uint64_t number = 0;
    proto::RequestKey key;
    /// The uid or key of the client.
    std::string who;
    /// Set when the request has ended. The question counts until the log has noticed.
    std::shared_ptr<std::atomic<bool>> is_abandoned;
    bool is_report = false;
  };

  using IsAbandoned = std::shared_ptr<std::atomic<bool>>;
  /// Keeps a request, and calls `ask` with the number of its question.
  template <class Ask>
  void keep(const Call& call, bool is_report, const Ask& ask);
  [[nodiscard]] WallTime now() const { return executor_.now().wall; }
  void answer(std::uint64_t number, log::Past past);

  const Executor& executor_;
  Requests& requests_;
  log::EventLog& log_;
  std::vector<Question> questions_;
  std::uint64_t last_number_ = 0;
};

}  // namespace resourced::daemon::service
