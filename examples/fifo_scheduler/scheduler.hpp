// First come, first served: the head of the queue gets what it needs as soon as that is up and free, and
// everything behind it waits until then. It hears of the resources as an observer of an acquisition (RFC 28),
// and of its users line by line; what it has to say are JSON objects. docs/schedulers.md lists them.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "client/acquisition.hpp"
#include "core/error.hpp"
#include "core/time.hpp"
#include "examples/fifo_scheduler/pool.hpp"

namespace resourced::fifo {

class Scheduler final : public client::AcquisitionObserver {
 public:
  using Say = std::function<void(const nlohmann::ordered_json&)>;
  using Clock = std::function<WallTime()>;

  Scheduler(Say say, Clock clock) : say_(std::move(say)), clock_(std::move(clock)) {}

  /// A request, `free ID`, or nothing: an empty line or a comment after `#`.
  void command(std::string_view line);
  /// Allocates what can be allocated after what has happened. Not part of the callbacks, since one response
  /// may make several of them and only the last leaves the picture complete.
  void schedule();
  /// Why there is nothing more to come.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  void on_resources(const rset::ResourceSet& resources, const text::IdSet& up) override;
  void on_property_remove(std::string_view name, const text::IdSet& ranks) override;
  void on_property_add(std::string_view name, const text::IdSet& ranks) override;
  void on_expiration(WallTime time) override;
  void on_shrink(const text::IdSet& ranks) override;
  void on_down(const text::IdSet& ranks) override;
  void on_up(const text::IdSet& ranks) override;
  void on_lost(const Error& why) override;
  void on_error(const Error& why) override { error_ = why; }

 private:
  struct Job {
    Pool::JobId id;
    Request request;
  };

  void submit(std::string_view line);
  void free(std::string_view argument);
  void deny(Pool::JobId id, std::string_view why);
  /// Denies what the present inventory can never serve.
  void judge_queue();
  [[nodiscard]] std::string reason_to_wait() const;

  Say say_;
  Clock clock_;
  Pool pool_;
  std::deque<Job> queue_;
  Pool::JobId last_id_ = 0;
  /// False before the first picture and while the daemon is away: what it said last may be wrong by now.
  bool acquired_ = false;
  /// Something happened since the head of the queue was last tried, or the queue last judged.
  bool try_head_ = false;
  bool judge_ = false;
  std::optional<Error> error_;
};

}  // namespace resourced::fifo
