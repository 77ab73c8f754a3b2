// A log in memory with the faults of a disk: a crash loses the unsynced records after a random point, which
// does not divide those that were appended together, and a record may be durable before the daemon is
// notified.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/module/state.hpp"
#include "daemon/log/complete_log.hpp"
#include "daemon/log/event_log.hpp"

namespace resourced::sim {

/// A complete export of the log (daemon/log/complete_log.hpp), and the state that is folded from its lines.
/// Now and then it begins anew with a snapshot, as that of a trimmed log.
class Export {
 public:
  Export() { begin({}); }
  void add(const daemon::log::Record& record);
  [[nodiscard]] const module::State& state() const { return reader_->state(); }

 private:
  void begin(const daemon::log::StoreBase& base);
  std::optional<daemon::log::Record> read(std::string_view lines);

  daemon::log::CompleteWriter writer_;
  std::optional<daemon::log::CompleteReader> reader_;
};

/// The state that a crash keeps.
struct Disk {
  std::vector<daemon::log::Record> records;
  Export exported = {};

  /// Returns the state after the last of the records.
  [[nodiscard]] const module::State& state() const { return exported.state(); }
  [[nodiscard]] daemon::log::Sequence last() const { return records.size(); }
};

class SimLog final : public daemon::log::EventLog {
 public:
  explicit SimLog(Disk& disk) : disk_(disk) {}

  [[nodiscard]] daemon::log::Sequence last_sequence() const noexcept override { return disk_.last(); }
  [[nodiscard]] bool is_numbered() const noexcept override { return true; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override {
    return disk_.records.empty() ? WallTime() : disk_.records.back().timestamp;
  }
  void append(daemon::log::Record record) override;
  void append_all(std::vector<daemon::log::Record> records) override;
  void ask(daemon::log::Question question) override { questions_.push_back(std::move(question)); }
  [[nodiscard]] Counters counters() const override { return {}; }

  /// A record that was appended, on disk or not.
  [[nodiscard]] const daemon::log::Record& record(daemon::log::Sequence number) const {
    return number <= disk_.last() ? disk_.records.at(number - 1) : queue_.at(number - disk_.last() - 1);
  }
  /// The last definition that was appended, on disk or not; 0 for none.
  [[nodiscard]] daemon::log::Sequence last_definition() const noexcept { return last_definition_; }
  /// The number of records that were appended and are not on disk.
  [[nodiscard]] std::size_t unsynced() const { return queue_.size(); }
  /// Writes the first `count` of these records, and the rest of those that were appended together with the
  /// last of them.
  void sync(std::size_t count);

  [[nodiscard]] bool has_questions() const { return !questions_.empty(); }
  /// Answers the oldest query.
  void answer();

 private:
  Disk& disk_;
  std::deque<daemon::log::Record> queue_;
  /// The last record of each append that is in the queue.
  std::deque<daemon::log::Sequence> ends_;
  void answer(const daemon::log::FindTargets& question);
  void answer(const daemon::log::FindStart& question);
  void answer(const daemon::log::ReadPage& question);
  void answer(const daemon::log::ReadPast& question);
  void answer(const daemon::log::ReadUsage& question);

  std::deque<daemon::log::Question> questions_;
  daemon::log::Sequence last_definition_ = 0;
};

}  // namespace resourced::sim
