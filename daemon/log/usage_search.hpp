// Reads the log and the roll-ups for reports, and the log for roll-ups. Each step is bounded, so that other
// readers of the log have their turn in between.
#pragma once

#include <optional>
#include <vector>

#include "core/module/usage.hpp"
#include "core/time.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/usage_rows.hpp"
#include "daemon/log/usage_sums.hpp"
#include "proto/topics/usage.hpp"

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
  UsageWalk(const PastSources& sources, UsageSums& sums, Sequence after, WallTime from, Sequence last,
            module::UsageTally::By by);

  /// Goes on by one step; true at the end. Throws Error ENODATA if events on the way were dropped meanwhile,
  /// EBADMSG after damage without a later snapshot.
  [[nodiscard]] bool advance();
  /// Counts the time from the last event to this one. If it is not known, it is missing.
  void finish(WallTime until, bool is_known = true);
  /// Adds the sums to those of the report, in steps after finish(); true at the end.
  [[nodiscard]] bool hand_over();
  [[nodiscard]] const module::State& states() const noexcept { return search_.states; }
  /// The time up to which it has counted.
  [[nodiscard]] WallTime now() const noexcept { return tally_.now(); }

 private:
  void step();
  /// Goes on with the next snapshot after damage; false if there is none.
  [[nodiscard]] bool pass_damage();

  PastSources sources_;
  UsageSums& sums_;
  module::UsageTally tally_;
  Sequence after_;
  Sequence last_;
  PastReader::Search search_;
  /// The sums have all that was counted of the months before this one.
  module::Month complete_until_ = 0;
  enum class Stage { begins, finds_states, counts } stage_ = Stage::begins;
};

/// Makes a report, in steps.
class ReportSearch {
 public:
  ReportSearch(const PastSources& sources, const proto::topics::ReportRequest& request);

  /// Goes on by one step; true at the end. Throws Error ENODATA if nothing is known of the time, or if the
  /// log changed too often meanwhile, and EBADMSG for damaged roll-ups.
  [[nodiscard]] bool advance();
  [[nodiscard]] proto::topics::Report report();

 private:
  void begin();
  [[nodiscard]] std::optional<RolledUp> end_of_roll_ups();
  void add_month();
  [[nodiscard]] bool walk();

  PastSources sources_;
  proto::topics::ReportRequest request_;
  WallTime until_;
  UsageSums sums_;
  /// The known part of the requested time, or a longer one where only whole months are known.
  WallTime known_from_{};
  WallTime known_until_{};
  std::optional<RolledUp> rolled_up_;
  bool has_begun_ = false;
  int begun_again_ = 0;
  /// The rolled-up months that are still to be added; none if `last_month_` is before `next_month_`.
  module::Month next_month_ = 0;
  module::Month last_month_ = -1;
  std::optional<UsageWalk> walk_;
  bool is_walked_ = false;
};

/// Makes an extension of the roll-ups, in steps.
class RollUpSearch {
 public:
  /// Extends the roll-ups up to event `last`. Throws Error EBADMSG if no snapshot leads there.
  RollUpSearch(const PastSources& sources, Sequence last);

  [[nodiscard]] bool advance();
  /// The extension. Valid after the last step.
  [[nodiscard]] const RollUp& result() const noexcept { return result_; }
  [[nodiscard]] const module::State& states() const noexcept { return walk_->states(); }

 private:
  void add_before(module::Month month);

  PastSources sources_;
  std::optional<RolledUp> before_;
  RollUp result_;
  UsageSums sums_{std::nullopt};
  std::optional<UsageWalk> walk_;
  bool is_walked_ = false;
  bool has_months_ = false;
  std::vector<module::Month> months_;
};

}  // namespace resourced::daemon::log
