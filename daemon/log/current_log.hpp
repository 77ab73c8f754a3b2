// The log to which the daemon writes in its present role. A copy of each record goes to the Flux instance
// that is attached, if there is one.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/log/event_log.hpp"

namespace resourced::daemon::log {

class CurrentLog final : public EventLog {
 public:
  /// Called with each record that the log gets.
  using Copy = std::function<void(const Record&)>;
  explicit CurrentLog(
      EventLog& log, Copy copy = [](const Record& /*record*/) {})
      : log_(&log), copy_(std::move(copy)) {}

  /// Goes on with another log that has the same events.
  void go_on_with(EventLog& log) { log_ = &log; }

  [[nodiscard]] Sequence last_sequence() const noexcept override { return log_->last_sequence(); }
  [[nodiscard]] bool is_numbered() const noexcept override { return log_->is_numbered(); }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return log_->last_timestamp(); }
  void append(Record record) override {
    copy_(record);
    log_->append(std::move(record));
  }
  void append_all(std::vector<Record> records) override {
    for (const Record& record : records) copy_(record);
    log_->append_all(std::move(records));
  }
  void ask(Question question) override { log_->ask(std::move(question)); }
  [[nodiscard]] bool wants_snapshot() const noexcept override { return log_->wants_snapshot(); }
  [[nodiscard]] Counters counters() const override { return log_->counters(); }

 private:
  EventLog* log_;
  Copy copy_;
};

}  // namespace resourced::daemon::log
