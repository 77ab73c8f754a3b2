// Work in a thread of its own, for answers that take long, such as those of a name server. A descriptor is
// readable once the result is there.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <utility>

namespace resourced::client {

/// The event that signals a result.
class ResultEvent {
 public:
  /// Throws Error if there are no descriptors left.
  ResultEvent();
  ~ResultEvent();
  ResultEvent(const ResultEvent&) = delete;
  ResultEvent& operator=(const ResultEvent&) = delete;

  void signal() const;
  [[nodiscard]] int fd() const noexcept { return event_; }

 private:
  int event_;
};

/// Starts a thread that the end of the process does not wait for. Throws Error if there are no more threads.
void run_in_background(std::function<void()> work);

/// A result that is there, or that a thread works on, which may outlive this object.
template <class Result>
class Background {
 public:
  /// Throws Error if there are no descriptors left.
  explicit Background(Result result) { set(*promise_, std::move(result), *event_); }
  /// Starts `work`, which must not throw. Throws Error if there are no descriptors or threads left.
  explicit Background(std::function<Result()> work) {
    run_in_background(
        [promise = promise_, event = event_, work = std::move(work)] { set(*promise, work(), *event); });
  }

  /// Returns the descriptor that is readable once the result is there.
  [[nodiscard]] int fd() const noexcept { return event_->fd(); }
  /// Whether the result is there; waits for it for up to this time.
  [[nodiscard]] bool is_over(int milliseconds = 0) const {
    return result_.wait_for(std::chrono::milliseconds(milliseconds)) == std::future_status::ready;
  }
  /// Returns the result. May be called once, after is_over() is true.
  [[nodiscard]] Result take() { return result_.get(); }

 private:
  static void set(std::promise<Result>& promise, Result result, const ResultEvent& event) {
    promise.set_value(std::move(result));
    event.signal();
  }

  std::shared_ptr<ResultEvent> event_ = std::make_shared<ResultEvent>();
  std::shared_ptr<std::promise<Result>> promise_ = std::make_shared<std::promise<Result>>();
  std::future<Result> result_ = promise_->get_future();
};

}  // namespace resourced::client
