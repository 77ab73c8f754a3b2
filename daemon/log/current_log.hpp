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
  void find_targets(std::shared_ptr<NamedTargets> targets, std::function<void()> answer) override {
    log_->find_targets(std::move(targets), std::move(answer));
  }
  void find_start(const EventFilter& filter, std::size_t most,
                  std::function<void(HistoryStart)> answer) override {
    log_->find_start(filter, most, std::move(answer));
  }
  void read_page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit,
                 std::function<void(HistoryPage)> answer) override {
    log_->read_page(filter, from, to, limit, std::move(answer));
  }
  void read_past(PastQuestion question, Render render, std::function<void(Past)> answer) override {
    log_->read_past(std::move(question), std::move(render), std::move(answer));
  }
  void read_usage(UsageQuestion question, std::function<void(Past)> answer) override {
    log_->read_usage(std::move(question), std::move(answer));
  }
  [[nodiscard]] bool wants_snapshot() const noexcept override { return log_->wants_snapshot(); }
  [[nodiscard]] Counters counters() const override { return log_->counters(); }

 private:
  EventLog* log_;
  Copy copy_;
};

}  // namespace resourced::daemon::log
