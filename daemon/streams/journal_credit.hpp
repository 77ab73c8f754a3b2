// Counts the bytes of a consumer's stream that are under way: handed to its transport and not written to its
// socket yet. They count until the payload is destroyed, on whichever thread. A transport that copies
// payloads destroys them at once, and bounds its copies itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "proto/message.hpp"

namespace resourced::daemon::streams {

/// Notifies the loop from any thread. Payloads under way share it, and may outlive the notified object.
class Bell {
 public:
  /// `call` is called at most once until answer().
  explicit Bell(std::function<void()> call) : call_(std::move(call)) {}

  void ring();
  void answer() noexcept { rung_ = false; }
  /// Removes `call`, which is not called after this returns.
  void remove();

 private:
  std::mutex mutex_;
  std::function<void()> call_;
  std::atomic<bool> rung_ = false;
};

class Credit {
 public:
  /// Maximum number of bytes under way, which one message may exceed. It keeps a consumer on a fast link busy
  /// while the loop serves others, and is small enough for a thousand consumers that do not read.
  static constexpr std::size_t most = std::size_t{256} << 10;
  /// Bytes that a message takes besides its payload: its other parts, and overhead of the transport.
  static constexpr std::size_t envelope = 512;

  explicit Credit(std::shared_ptr<Bell> bell) : account_(std::make_shared<Account>(std::move(bell))) {}

  /// Returns whether a message may be sent. If not, the loop is notified when half of the room is free again.
  [[nodiscard]] bool has_room() noexcept;

  /// Returns a payload of the same bytes, which count as under way until it is destroyed.
  [[nodiscard]] proto::Payload lend(const proto::Payload& payload);

 private:
  class Account {
   public:
    explicit Account(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}
    bool has_room() noexcept;
    void take(std::size_t size) noexcept { under_way_ += size; }
    void give_back(std::size_t size);

   private:
    std::atomic<std::size_t> under_way_ = 0;
    std::atomic<bool> awaited_ = false;
    std::shared_ptr<Bell> bell_;
  };
  std::shared_ptr<Account> account_;
};

}  // namespace resourced::daemon::streams
