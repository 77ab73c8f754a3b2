// Drives a connection in an event loop of Boost.Asio, with completion tokens: callbacks, use_future, or
// use_awaitable for co_await. For programs that have Boost (1.74 or later); the library itself has no Asio.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/types.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "core/error.hpp"

namespace resourced::client {

/// Calls process() of a connection in the loop of an executor whenever there is something to do, and so the
/// handlers, observers and timers of the connection. An exception of a handler leaves through the loop, which
/// may run again. A handler may destroy the driver.
///
/// Threads: use driver and connection in the executor only, and give the loop of several threads a strand.
/// Completion handlers run in the executor that is associated with them, else in that of the driver. Another
/// thread posts its work to the executor (boost::asio::post).
///
/// A driver belongs to the process that made it, as its connection does. In a child of fork(2) it does
/// nothing, also before the child has called notify_fork() of its loop: the destructor has no effect, and the
/// other functions throw Error ENOTCONN. What the driver waits for stays work of that loop, so that its run()
/// does not end by itself there.
class AsioDriver {
 public:
  /// `connection` must outlive the driver.
  AsioDriver(const boost::asio::any_io_executor& executor, Connection& connection)
      : state_(std::make_shared<State>(executor, usable(connection, "AsioDriver()"))) {
    watch(state_);
  }
  /// Ends what async_wait() waits for. Requests go on, but get no response until the connection is driven.
  ~AsioDriver() {
    state_->has_ended = true;
    if (state_->process == ::getpid()) {
      state_->descriptor.release();
      state_->processed.cancel();
    } else {
      keep(std::move(state_));
    }
  }
  AsioDriver(const AsioDriver&) = delete;
  AsioDriver& operator=(const AsioDriver&) = delete;

  /// Completes, as void(), after the next process() of this driver, but not after handlers that run within
  /// call_text() or wait(). Check then whether the awaited state has come, such as a change of
  /// Acquisition::up(). Responses that arrive before the completion handler runs count as well.
  template <class Token>
  auto async_wait(Token&& token) {
    usable(state_->connection, "async_wait()");
    return boost::asio::async_compose<Token, void()>(
        [state = state_, waits = false](auto& self, const boost::system::error_code& = {}) mutable {
          if (std::exchange(waits, true)) return self.complete();
          state->processed.async_wait(std::move(self));
        },
        token, state_->processed);
  }

  /// Calls `start` with a handler, with which it makes a request of the connection, such as client::alloc().
  /// Completes, as void(Response), with the last response, outside of process(); with a local failure if
  /// `start` throws an Error, as for a request that cannot be sent. If the connection is closed before, the
  /// completion handler is destroyed and not called.
  template <class Start, class Token>
  auto async_request(Start&& start, Token&& token) {
    usable(state_->connection, "async_request()");
    return boost::asio::async_initiate<Token, void(Response)>(
        [executor = state_->descriptor.get_executor()](auto completion, auto&& make_request) {
          // A Connection::Handler can be copied, which the completion handler of a token need not. Empty once
          // the request is completed: `start` may send it and throw then.
          auto shared = std::make_shared<std::optional<decltype(completion)>>(std::move(completion));
          const auto complete = [shared, executor](const Response& response) {
            if (!response.last() || !*shared) return;
            auto own = boost::asio::get_associated_executor(**shared, executor);
            auto work = [handler = std::move(**shared), last = response]() mutable {
              std::move(handler)(std::move(last));
            };
            shared->reset();
            boost::asio::post(own, std::move(work));
          };
          // With use_awaitable of Boost 1.74 an exception would end the program here.
          try {
            make_request(complete);
          } catch (const Error& error) {
            complete(Response("", error, true));
          }
        },
        token, std::forward<Start>(start));
  }

 private:
  struct State {
    State(const boost::asio::any_io_executor& executor, Connection& driven)
        : connection(driven),
          descriptor(executor, driven.fd()),
          processed(executor, boost::asio::steady_timer::time_point::max()) {}

    Connection& connection;
    boost::asio::posix::stream_descriptor descriptor;
    /// Never expires: it is cancelled after each process(), which completes all waits for it.
    boost::asio::steady_timer processed;
    const pid_t process = ::getpid();
    bool has_ended = false;

    [[nodiscard]] bool is_usable() const { return !has_ended && process == ::getpid(); }
  };

  static Connection& usable(Connection& connection, std::string_view what) {
    connection.refuse_in_child(what);
    return connection;
  }

  /// Keeps what a child has inherited: until notify_fork() its loop shares an epoll instance with the loop of
  /// the parent, from which the destructor of a descriptor removes the one of the connection.
  static void keep(std::shared_ptr<State> inherited) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::shared_ptr<State>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(inherited));
  }

  static void watch(const std::shared_ptr<State>& state) {
    state->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                 [state](const boost::system::error_code& error) {
                                   if (error || !state->is_usable()) return;
                                   try {
                                     state->connection.process();
                                   } catch (...) {
                                     go_on(state);
                                     throw;
                                   }
                                   go_on(state);
                                 });
  }

  static void go_on(const std::shared_ptr<State>& state) {
    // A handler of the connection may have ended the driver, or forked.
    if (!state->is_usable()) return;
    state->processed.cancel();
    watch(state);
  }

  std::shared_ptr<State> state_;
};

}  // namespace resourced::client
