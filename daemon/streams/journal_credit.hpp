// How much of a consumer's stream is under way: handed to its transport and not written to its socket yet. A
// payload tells by the end of its life, in whichever thread that is; a transport that copies has the bytes
// behind it at once, and bounds them itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "proto/message.hpp"

namespace resourced::daemon::streams {

/// Calls the loop from any thread. What is under way can outlive whom it calls.
class Bell {
 public:
  /// `call` is called once until the bell was answered.
  explicit Bell(std::function<void()> call) : call_(std::move(call)) {}

  void ring();
  void answer() noexcept { rung_ = false; }
  /// Nobody is called any more, from now on.
  void remove();

 private:
  std::mutex mutex_;
  std::function<void()> call_;
  std::atomic<bool> rung_ = false;
};

class Credit {
 public:
  /// Bytes; one message more may be under way. Enough for a consumer on a fast link to be kept busy while the
  /// loop sees to others, and little enough for a thousand that do not read.
  static constexpr std::size_t most = std::size_t{256} << 10;
  /// What a message costs besides its payload: its other parts, and what the transport makes of them.
  static constexpr std::size_t envelope = 512;

  explicit Credit(std::shared_ptr<Bell> bell) : account_(std::make_shared<Account>(std::move(bell))) {}

  /// Whether a message may be sent. If not, the bell is rung when half of the room is there again.
  [[nodiscard]] bool has_room() noexcept;

  /// The same bytes, under way for as long as somebody has them.
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
