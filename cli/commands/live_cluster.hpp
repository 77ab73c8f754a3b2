// The state of a daemon that a command shows continuously: the journal keeps it up to date, over restarts of
// the daemon. The state is requested only after events, and at most once a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "client/connection.hpp"
#include "client/journal.hpp"
#include "core/error.hpp"
#include "core/time.hpp"

namespace resourced::cli::commands {

class LiveCluster : public client::JournalObserver {
 public:
  /// The shortest time between two requests for the state.
  static constexpr client::Milliseconds pause{1000};
  /// Interval of requests for the schedulers, whose coming and going is no event.
  static constexpr client::Milliseconds peers_period{5000};

  struct Options {
    /// Whether to request the schedulers and agents, too.
    bool peers = false;
    /// Number of past events that are shown at the beginning, and of events that are kept.
    std::size_t events = 0;
    /// Whether records of the ledger count as events that change the state. They are not kept.
    bool allocations = false;
  };

  /// Makes the state; `changed` is called when there is something else to show, from inside process(): with
  /// the state, or with the loss. Every other failure of the daemon is thrown there.
  LiveCluster(Context& context, Options options, std::function<void()> changed);

  /// Returns the answer to resource.status; null until there is one.
  [[nodiscard]] const nlohmann::json& status() const noexcept { return status_; }
  /// Returns the answer to resource.peers; null if there is none.
  [[nodiscard]] const nlohmann::json& peers() const noexcept { return peers_; }
  [[nodiscard]] const std::deque<nlohmann::json>& events() const noexcept { return events_; }
  /// Returns why the state may be outdated; nothing while it is live.
  [[nodiscard]] const std::optional<Error>& loss() const noexcept { return loss_; }
  [[nodiscard]] WallTime lost_at() const noexcept { return lost_at_; }

 private:
  void on_events(const client::JournalBatch& batch) override;
  void on_lost(const Error& why) override;
  void on_error(const Error& why) override;
  void begin();
  void follow(std::optional<std::uint64_t> last);
  /// Requests the state, now or when the pause is over.
  void refresh();
  void ask();
  /// Calls `use` with the answer. Ignores a failure that the journal reports as well.
  void ask_for(const char* topic, std::function<void(nlohmann::json)> use);
  void ask_for_peers();
  void watch_peers();

  Context& context_;
  client::Connection& connection_;
  Options options_;
  std::function<void()> changed_;
  std::optional<client::Journal> journal_;
  /// Whether the journal has reported its last event, and events after it are requested.
  bool is_following_ = false;
  bool is_past_told_ = false;
  bool watches_peers_ = false;
  nlohmann::json status_;
  nlohmann::json peers_;
  std::deque<nlohmann::json> events_;
  std::optional<Error> loss_;
  WallTime lost_at_{};
  /// Whether a request for the state is under way, or a timer for it runs.
  bool is_asking_ = false;
  bool is_due_ = false;
  /// Whether the state has changed since the request.
  bool is_outdated_ = false;
  std::optional<SteadyTime> asked_at_;
};

}  // namespace resourced::cli::commands
