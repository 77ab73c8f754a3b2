// Requests whose payload would hold the loop while it is read: a thread reads them, and the loop decides on
// them. Later requests of the same client wait behind, so that they are served in the order in which they
// came.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/service/bounds.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/topics.hpp"
#include "os/thread.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class LargeRequests {
 public:
  /// Maximum number of bytes that wait here of one uid or key. A request that is being read counts until the
  /// thread is done with it, also if its client is gone.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  class Owner {
   public:
    /// Serves a request of a known client whose turn has come. `content` is set if the thread has read it.
    virtual void on_turn(proto::ClientId client, const proto::Message& request, Content* content) = 0;

   protected:
    ~Owner() = default;
  };

  LargeRequests(peers::Clients& clients, Deferral& deferral, Owner& owner, const Bounds& bounds)
      : clients_(clients), deferral_(deferral), owner_(owner), bounds_(bounds) {}
  /// Waits until the thread has read its present request.
  ~LargeRequests() = default;
  LargeRequests(const LargeRequests&) = delete;
  LargeRequests& operator=(const LargeRequests&) = delete;
  LargeRequests(LargeRequests&&) = delete;
  LargeRequests& operator=(LargeRequests&&) = delete;

  /// Whether the thread reads requests of this size and topic.
  [[nodiscard]] bool is_large(const Topic& topic, const proto::Message& request) const noexcept {
    return topic.read != nullptr && request.payload && request.payload->size() > bounds_.on_loop;
  }
  /// Whether a request of this client is being read.
  [[nodiscard]] bool reads(proto::ClientId client) const;
  /// Whether requests of this client wait, so that its next one has to wait behind them.
  [[nodiscard]] bool has(proto::ClientId client) const { return lines_.contains(client); }
  /// Returns how many requests of this client are being read or wait behind.
  [[nodiscard]] std::size_t size(proto::ClientId client) const;

  /// Lets the thread read a request of this client, unless it reads one already, and calls on_turn() then.
  /// Throws Error EAGAIN if too many bytes of its uid or key wait, or if the system has no thread now.
  void read(proto::ClientId client, const Topic& topic, const proto::Message& request);
  /// Lets a request wait behind those that has() tells of. Throws Error EAGAIN if too many bytes wait.
  void add(proto::ClientId client, proto::Message request);
  /// Drops the requests of a client that is gone. Returns whether one of them gives back what the client has
  /// acquired.
  bool drop(proto::ClientId client);
  /// Drops all requests, at the end of the daemon.
  void drop_all();

 private:
  /// Tells the thread that nobody wants the result of a reading any more.
  using IsDropped = std::shared_ptr<std::atomic<bool>>;
  /// The requests of one client.
  struct Line {
    /// The uid or key.
    std::string who;
    /// Null while no request of the client is being read.
    IsDropped reading = nullptr;
    std::deque<proto::Message> behind = {};
  };

  void count(const std::string& who, const proto::Message& request);
  void discount(const std::string& who, const proto::Message& request);
  /// Serves the first request that waits behind others.
  void serve_next(proto::ClientId client);
  void serve(proto::ClientId client, const proto::Message& request, Content* content);

  peers::Clients& clients_;
  Deferral& deferral_;
  Owner& owner_;
  Bounds bounds_;
  std::unordered_map<proto::ClientId, Line> lines_;
  /// The bytes that wait, by uid or key.
  std::map<std::string, std::size_t> bytes_;
  os::Worker worker_;
};

}  // namespace resourced::daemon::service
