// Entries of the log on their way to a replica. There may be many at once when a standby has been away, and
// the loop serves readers meanwhile: records are decoded beside it, and handed over in slices of its time.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "core/cluster/member.hpp"
#include "core/error.hpp"
#include "daemon/log/etcd/aside.hpp"
#include "daemon/log/records.hpp"

namespace resourced::daemon::log::etcd {

class Intake {
 public:
  struct Callbacks {
    /// Takes the next record.
    std::function<void(log::Record)> record;
    /// Called with true when more entries wait than should, with false once there are few again.
    std::function<void(bool)> busy;
    /// An entry is not readable. No records come any more.
    std::function<void(const Error&)> failed;
    /// A record that the replica has already. If this throws Error, the entry counts as not readable.
    std::function<void(const log::Record&)> had = [](const auto&) {};
  };
  /// `last` is the last event that the replica has.
  Intake(boost::asio::io_context& loop, log::Sequence last, Callbacks callbacks);

  /// Takes the next entry of the log. Small ones are handed over at once, as far as they take little of a
  /// turn of the loop, unless others wait.
  void take(const ::resourced::cluster::Batch& batch);
  /// Tells that the replica has this event and all before it on disk.
  void on_stored(log::Sequence last);
  /// Calls `work`, from the loop or at once, when the replica has all that was taken on disk.
  void when_stored(std::function<void()> work);

 private:
  using Batch = ::resourced::cluster::Batch;
  /// A group of entries, or their records once they are decoded.
  struct Piece {
    std::vector<Batch> batches;
    std::vector<log::Record> records;
    std::optional<Error> failure;
    std::size_t bytes = 0;
    std::size_t given = 0;
  };

  static void decode(Piece& piece);
  void decode_some();
  void give_some();
  void give_soon();
  void tell();
  void finish();
  [[nodiscard]] bool admit_direct(std::size_t size);
  [[nodiscard]] bool is_empty() const noexcept { return bytes_ == 0; }
  [[nodiscard]] bool is_stored() const noexcept { return is_empty() && stored_ >= given_; }

  boost::asio::io_context& loop_;
  Callbacks callbacks_;
  std::deque<Batch> waiting_;
  std::size_t under_way_ = 0;
  std::deque<Piece> decoded_;
  /// Bytes of all entries that were taken and not handed over.
  std::size_t bytes_ = 0;
  log::Sequence given_;
  log::Sequence stored_;
  /// Bytes of entries that were handed over at once in this turn of the loop.
  std::size_t direct_bytes_ = 0;
  bool is_busy_ = false;
  bool is_posted_ = false;
  bool has_failed_ = false;
  std::function<void()> when_stored_;
  /// Expires with this object, so that posted functions do nothing afterwards.
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
  Aside aside_;
};

}  // namespace resourced::daemon::log::etcd
