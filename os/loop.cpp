#include "os/loop.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

namespace resourced::os {

namespace asio = boost::asio;

asio::steady_timer::duration timer_duration(Seconds duration) {
  constexpr Seconds longest{1e9};
  return std::chrono::ceil<asio::steady_timer::duration>(std::min(duration, longest));
}

WallTime wall_clock() { return WallTime(std::chrono::system_clock::now().time_since_epoch()); }

SteadyTime steady_clock() { return SteadyTime(std::chrono::steady_clock::now().time_since_epoch()); }

BootTime boot_clock() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return BootTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

void run_later(asio::io_context& loop, Seconds pause, std::function<void()> work) {
  if (pause <= Seconds(0)) return asio::post(loop, std::move(work));
  const auto timer = std::make_shared<asio::steady_timer>(loop);
  timer->expires_after(timer_duration(pause));
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void run_at(asio::steady_timer& timer, SteadyTime when, std::function<void()> work) {
  timer.expires_at(asio::steady_timer::time_point(timer_duration(when.time_since_epoch())));
  timer.async_wait([work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void run_at(asio::steady_timer& timer, BootTime when, std::function<void()> work) {
  // Read boot_clock() first: time that passes before the second reading makes the timer later, never earlier.
  const Seconds left = when - boot_clock();
  run_at(timer, steady_clock() + left, std::move(work));
}

// The state of a watch, shared with handlers in the loop that may run after the watch has been destroyed.
struct Watch::State : std::enable_shared_from_this<Watch::State> {
  State(asio::io_context& io, std::function<void()> f) : loop(io), work(std::move(f)), ready(io) {}

  void wait() {
    ready.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (error || self->is_over) return;
                       self->work();
                       if (!self->is_over) self->wait();
                     });
  }

  void look_again() {
    if (std::exchange(is_looking_again, true)) return;
    asio::post(loop, [self = shared_from_this()] {
      self->is_looking_again = false;
      if (!self->is_over) self->work();
    });
  }

  asio::io_context& loop;
  std::function<void()> work;
  asio::posix::stream_descriptor ready;
  bool is_looking_again = false;
  bool is_over = false;
};

Watch::Watch(asio::io_context& loop, int descriptor, std::function<void()> work)
    : state_(std::make_shared<State>(loop, std::move(work))) {
  state_->ready.assign(descriptor);
  state_->wait();
}

Watch::~Watch() {
  state_->is_over = true;
  state_->ready.release();
}

void Watch::look_again() { state_->look_again(); }

SignalLoop::SignalLoop() : signals_(loop_, SIGINT, SIGTERM) {
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) signals_.add(SIGHUP);
  wait_for_signal();
}

bool SignalLoop::work_until(int descriptor, const std::function<void()>& work,
                            const std::function<bool()>& done) {
  std::optional<Watch> watch(std::in_place, loop_, descriptor, work);
  while (!done()) {
    loop_.run_one();
    if (!has_signal_) continue;
    // Stop watching the descriptor: if it stays readable, poll() would not return.
    watch.reset();
    // Take all signals that have come: together they count as one.
    loop_.poll();
    has_signal_ = false;
    return false;
  }
  return true;
}

void SignalLoop::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
    if (error) return;
    has_signal_ = true;
    wait_for_signal();
  });
}

}  // namespace resourced::os
