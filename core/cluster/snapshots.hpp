// Snapshots of the state in etcd, for members that lack events which the log has no more.
//
// A snapshot is a text that the owner of a leader makes, and that the owner of a follower puts in the place
// of its replica. It is in chunks, `snapshot/EPOCH/SEQUENCE/INDEX`, which are put one after another; the key
// `snapshot`, put last, names it. From then on the log may begin after its event. The chunks of the one
// before stay until the next, for members that are reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/keys.hpp"
#include "core/cluster/requests.hpp"
#include "core/hash.hpp"
#include "core/time.hpp"

namespace resourced::cluster {

/// What the key `snapshot` has.
struct SnapshotHeader {
  /// The snapshot has all events up to this one.
  Sequence sequence = 0;
  /// Of the leader that has put it.
  Revision epoch = 0;
  std::size_t chunks = 0;
  std::size_t bytes = 0;
  /// A checksum of the text, chunk by chunk (Hash).
  std::uint64_t sum = 0;
  /// The schema of the store that the text is. A member reads those up to its own.
  std::uint64_t schema = 0;
  friend bool operator==(const SnapshotHeader&, const SnapshotHeader&) = default;
};

[[nodiscard]] std::string encode_header(const SnapshotHeader& header);
/// Throws Garbled, and Error EPROTONOSUPPORT for a snapshot of a version before 0.1.0.
[[nodiscard]] SnapshotHeader read_header(const KeyValue& header);
[[nodiscard]] std::string chunk_key(const SnapshotHeader& header, std::size_t index);

/// A snapshot as the owner of a leader has made it.
struct Snapshot {
  Sequence sequence = 0;
  std::size_t bytes = 0;
  /// So many bytes from this offset. May throw Error: the snapshot is given up then.
  std::function<std::string(std::size_t offset, std::size_t size)> read;
};

struct SnapshotSettings {
  /// The next one is due after so many events, or so many bytes of the log.
  Sequence events = 10000;
  std::size_t log_bytes = std::size_t{64} << 20;
  /// From one to the next, at least, and so many times as long as the last one took.
  Seconds pause{10};
  double rests = 10;
  /// Of one key. Commits wait for one at most.
  std::size_t chunk_bytes = std::size_t{128} << 10;
  /// A larger snapshot is not taken.
  std::size_t most_bytes = std::size_t{1} << 30;
  std::uint64_t schema = 0;
};

/// The bytes of the log's entries, as far as a member has read or committed them.
class EntrySizes {
 public:
  void add(Sequence last, std::size_t bytes);
  /// The entries up to this event are not in the log any more.
  void drop(Sequence last);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Of the entries after this event.
  [[nodiscard]] std::size_t bytes_after(Sequence sequence) const noexcept;
  /// The last event of the newest entry that goes beyond so many bytes, 0 if there is none.
  [[nodiscard]] Sequence beyond(std::size_t most) const noexcept;

 private:
  struct Entry {
    Sequence last = 0;
    /// Of this entry and all before it.
    std::size_t end = 0;
  };
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::size_t end_ = 0;
};

/// The snapshots of a leader: when the next is due, and what is to be put and deleted.
class SnapshotKeeper {
 public:
  explicit SnapshotKeeper(const SnapshotSettings& settings) : settings_(settings) {}

  /// The member leads from now on. Before anything else it looks at what there is.
  void lead(Revision epoch);
  [[nodiscard]] bool is_surveyed() const noexcept { return is_surveyed_; }
  [[nodiscard]] static Transaction survey();
  /// `applied` is the last event of the log.
  void on_survey(const TransactionDone& done, Sequence applied);

  /// True once for each snapshot that the owner is to make.
  [[nodiscard]] bool asks(Sequence applied, const EntrySizes& sizes, BootTime now);
  /// The answer of the owner. One that does not help is dropped.
  void offer(Snapshot snapshot, BootTime now);
  /// The owner cannot make one now, or etcd refuses it.
  void decline(BootTime now);
  /// The owner will not answer.
  void withdraw() noexcept { is_asked_ = false; }

  /// Whether a chunk or the header is to be put.
  [[nodiscard]] bool is_putting() const noexcept { return offered_.has_value(); }
  /// That one. The header compares its own last revision, too: an attempt that comes late must not put an
  /// earlier snapshot in the place of a later one. Throws Error if the snapshot cannot be read.
  [[nodiscard]] Transaction next_put();
  /// False if another member leads.
  [[nodiscard]] bool on_put(const TransactionDone& done, BootTime now);

  /// The last event that the snapshot has, 0 without one.
  [[nodiscard]] Sequence bound() const noexcept { return present_ ? present_->sequence : 0; }
  /// The owner could not make the last one.
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// The log begins after this event.
  void on_trim(Sequence last) noexcept;
  /// Whether there are chunks of earlier snapshots, and their deletion. That leaves all later ones of this
  /// epoch, as it may come late.
  [[nodiscard]] bool has_leftovers() const noexcept { return has_leftovers_; }
  [[nodiscard]] std::vector<Operation> clean() const;
  void on_clean() noexcept { has_leftovers_ = false; }

 private:
  void end_put(Revision revision, BootTime now);

  SnapshotSettings settings_;
  Revision epoch_ = 0;
  bool is_surveyed_ = false;
  bool is_asked_ = false;
  bool has_failed_ = false;
  bool has_leftovers_ = false;
  /// In etcd, and the one before it, whose chunks are still there.
  std::optional<SnapshotHeader> present_;
  std::optional<SnapshotHeader> previous_;
  /// The revision that last modified the header; 0 if it is not there.
  Revision header_revision_ = 0;
  /// The log begins after this event.
  Sequence log_begin_ = 0;
  BootTime asked_at_{};
  BootTime next_at_{};
  /// Under way: its header has the chunks that are put.
  std::optional<Snapshot> offered_;
  SnapshotHeader putting_;
  Hash sum_;
  /// The chunk that is being put.
  std::string chunk_;
};

/// A snapshot on its way to a follower.
class SnapshotReading {
 public:
  explicit SnapshotReading(const SnapshotSettings& settings) : settings_(settings) {}

  /// The header, or the next chunk with it.
  [[nodiscard]] Transaction next() const;

  struct Step {
    /// The chunks of this one follow, from the first.
    std::optional<SnapshotHeader> begun = std::nullopt;
    std::optional<std::string> chunk = std::nullopt;
    bool is_done = false;
    /// There is none that has more than the replica.
    bool is_missing = false;
  };
  /// `applied` is the last event of the replica. Throws Error for a snapshot that cannot be read.
  [[nodiscard]] Step on_read(const TransactionDone& done, Sequence applied);

 private:
  [[nodiscard]] Step begin(const SnapshotHeader& header);

  SnapshotSettings settings_;
  std::optional<SnapshotHeader> header_;
  std::size_t chunks_ = 0;
  std::size_t bytes_ = 0;
  Hash sum_;
};

}  // namespace resourced::cluster
