// Adds up the times of targets by state along the log, for reports and for roll-ups. Each step is bounded, so
// that other readers of the log have their turn in between.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "core/module/usage.hpp"
#include "core/module/usage_meter.hpp"
#include "core/time.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/usage_rows.hpp"

namespace resourced::daemon::log {

/// The readers of the past of a store.
struct PastSources {
  StoreReader& log;
  PastReader& past;
  UsageReader& usage;
};

/// Adds up times from the state after one event to another event. After damage in the log it goes on with the
/// next snapshot, and the time up to that is missing.
class UsageWalk {
 public:
  /// Counts from `from` on. If event `after` is later than that, the time up to it is missing.
  UsageWalk(const PastSources& sources, Sequence after, WallTime from, Sequence last,
            module::UsageMeter::By by);

  /// Goes on by one step; true at the end. Throws Error ENODATA if events on the way were dropped meanwhile,
  /// EBADMSG after damage without a later snapshot.
  [[nodiscard]] bool advance();
  [[nodiscard]] module::UsageMeter& meter() noexcept { return meter_; }

 private:
  void find_states();
  void read_events();
  /// Goes on with the next snapshot after damage; false if there is none.
  [[nodiscard]] bool pass_damage();

  PastSources sources_;
  module::UsageMeter meter_;
  Sequence after_;
  Sequence last_;
  std::optional<PastReader::Search> search_;
  bool has_states_ = false;
  /// The last event that was added to `meter_`.
  Sequence at_ = 0;
  HistoryPage page_;
  std::size_t next_in_page_ = 0;
};

/// Makes a report, in steps.
class ReportSearch {
 public:
  struct Question {
    WallTime since{};
    WallTime until{};
    module::UsageMeter::By by{};
  };
  ReportSearch(const PastSources& sources, Question question) : sources_(sources), question_(question) {}

  /// Goes on by one step; true at the end. Throws Error ENODATA if nothing is known of the time, or if the
  /// log changed too often meanwhile, and EBADMSG for damaged roll-ups.
  [[nodiscard]] bool advance();
  [[nodiscard]] const module::UsageReport& report() const noexcept { return report_; }

 private:
  void begin();
  [[nodiscard]] std::optional<RolledUp> end_of_roll_ups();
  void add_month();
  void add_table(module::Month month, module::UsageTable table);
  [[nodiscard]] bool walk();

  PastSources sources_;
  Question question_;
  module::UsageReport report_;
  std::optional<RolledUp> rolled_up_;
  bool has_begun_ = false;
  int begun_again_ = 0;
  /// The rolled-up months that are still to be added; none if `last_month_` is before `next_month_`.
  module::Month next_month_ = 0;
  module::Month last_month_ = -1;
  std::optional<UsageWalk> walk_;
};

/// Makes an extension of the roll-ups, in steps.
class RollUpSearch {
 public:
  /// Extends the roll-ups up to event `last`. Throws Error EBADMSG if no snapshot leads there.
  RollUpSearch(const PastSources& sources, Sequence last);

  [[nodiscard]] bool advance();
  /// The extension. Valid after the last step.
  [[nodiscard]] const RollUp& result() const noexcept { return result_; }
  [[nodiscard]] const module::State& states() { return walk_->meter().states(); }

 private:
  void add_before(module::Month month, module::UsageTable& table);

  PastSources sources_;
  RollUp result_;
  std::optional<UsageWalk> walk_;
  bool is_walked_ = false;
  module::UsageMeter::Tables tables_;
};

}  // namespace resourced::daemon::log
