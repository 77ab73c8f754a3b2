#include "core/cluster/snapshots.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/invariant.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::cluster {

using nlohmann::json;

namespace {

std::string epoch_folder(Revision epoch) { return fmt::format("{}/{:020}", snapshot_key, epoch); }
std::string chunk_folder(const SnapshotHeader& header) {
  return fmt::format("{}/{:020}", epoch_folder(header.epoch), header.sequence);
}

std::uint64_t sum_of(const std::string& key, const std::string& text) {
  constexpr int base = 16;
  const auto sum = text::whole_number<std::uint64_t>(text, base);
  if (!sum) throw Garbled(key);
  return *sum;
}

}  // namespace

std::string encode_header(const SnapshotHeader& header) {
  return json{{"sequence", header.sequence}, {"epoch", header.epoch},
              {"chunks", header.chunks},     {"bytes", header.bytes},
              {"schema", header.schema},     {"sum", fmt::format("{:016x}", header.sum)}}
      .dump();
}

SnapshotHeader read_header(const KeyValue& header) {
  const json value = object_of(header.key, header.value);
  SnapshotHeader read;
  read.sequence = number_of(header.key, value, "sequence");
  read.epoch = static_cast<Revision>(number_of(header.key, value, "epoch"));
  read.chunks = number_of(header.key, value, "chunks");
  read.bytes = number_of(header.key, value, "bytes");
  if (!value.contains("schema") && value.contains("format")) refuse_older("snapshot");
  read.schema = number_of(header.key, value, "schema");
  read.sum = sum_of(header.key, text_of(header.key, value, "sum"));
  if (read.chunks == 0 || read.chunks > read.bytes) throw Garbled(header.key);
  return read;
}

std::string chunk_key(const SnapshotHeader& header, std::size_t index) {
  return fmt::format("{}/{:020}", chunk_folder(header), index);
}

// Sizes

void EntrySizes::add(Sequence last, std::size_t bytes) {
  end_ += bytes;
  bytes_ += bytes;
  entries_.push_back({last, end_});
}

void EntrySizes::drop(Sequence last) {
  while (!entries_.empty() && entries_.front().last <= last) {
    bytes_ = end_ - entries_.front().end;
    entries_.pop_front();
  }
}

std::size_t EntrySizes::bytes_after(Sequence sequence) const noexcept {
  const auto after = std::ranges::upper_bound(entries_, sequence, {}, &Entry::last);
  return after == entries_.begin() ? bytes_ : end_ - std::prev(after)->end;
}

Sequence EntrySizes::beyond(std::size_t most) const noexcept {
  if (bytes_ <= most) return 0;
  const auto first_kept = std::ranges::lower_bound(entries_, end_ - most, {}, &Entry::end);
  return first_kept->last;
}

// The leader

void SnapshotKeeper::lead(Revision epoch) {
  *this = SnapshotKeeper(settings_);
  epoch_ = epoch;
}

Transaction SnapshotKeeper::survey() {
  return {{}, {Read{std::string(snapshot_key)}, Read{log_key(0), end_of(log_folder), 1}}, {}};
}

void SnapshotKeeper::on_survey(const TransactionDone& done, Sequence applied) {
  check_found(done, 2);
  is_surveyed_ = true;
  has_leftovers_ = true;
  if (!done.found[0].empty()) header_revision_ = done.found[0][0].modified;
  try {
    if (!done.found[0].empty()) present_ = read_header(done.found[0][0]);
  } catch (const Garbled&) {
    // The next one takes its place.
    log_begin_ = applied;
    return;
  }
  log_begin_ = done.found[1].empty() ? applied : entry_header(done.found[1][0]).first - 1;
}

bool SnapshotKeeper::asks(Sequence applied, const EntrySizes& sizes, BootTime now) {
  if (!is_surveyed_ || is_asked_ || offered_ || now < next_at_) return false;
  const Sequence base = present_ ? present_->sequence : 0;
  if (applied <= base) return false;
  if (log_begin_ <= base && applied - base < settings_.events &&
      sizes.bytes_after(base) < settings_.log_bytes)
    return false;
  is_asked_ = true;
  asked_at_ = now;
  return true;
}

void SnapshotKeeper::offer(Snapshot snapshot, BootTime now) {
  if (!std::exchange(is_asked_, false)) return;
  const bool is_old = present_ && snapshot.sequence <= present_->sequence;
  if (is_old || snapshot.bytes == 0 || snapshot.bytes > settings_.most_bytes) {
    is_asked_ = true;
    return decline(now);
  }
  putting_ = {snapshot.sequence, epoch_, 0, 0, 0, settings_.schema};
  sum_ = {};
  chunk_.clear();
  offered_ = std::move(snapshot);
}

void SnapshotKeeper::decline(BootTime now) {
  if (!std::exchange(is_asked_, false) && !offered_) return;
  offered_.reset();
  chunk_.clear();
  has_failed_ = true;
  has_leftovers_ = true;
  next_at_ = now + settings_.pause;
}

Transaction SnapshotKeeper::next_put() {
  RESOURCED_INVARIANT(offered_);
  const Guard leads{std::string(leader_key), Guard::Field::created, epoch_};
  const std::string header(snapshot_key);
  if (putting_.bytes == offered_->bytes) {
    return {{leads, {header, Guard::Field::modified, header_revision_}},
            {Put{header, encode_header(putting_)}},
            {Read{std::string(leader_key)}, Read{header}}};
  }
  if (chunk_.empty()) {
    const std::size_t size = std::min(settings_.chunk_bytes, offered_->bytes - putting_.bytes);
    chunk_ = offered_->read(putting_.bytes, size);
    RESOURCED_INVARIANT(chunk_.size() == size);
  }
  return {{leads}, {Put{chunk_key(putting_, putting_.chunks), chunk_}}, {}};
}

bool SnapshotKeeper::on_put(const TransactionDone& done, BootTime now) {
  if (!offered_) return done.held;
  if (putting_.bytes < offered_->bytes) {
    if (!done.held) return false;
    putting_.bytes += chunk_.size();
    ++putting_.chunks;
    sum_.add(chunk_);
    putting_.sum = sum_.value();
    chunk_.clear();
    return true;
  }
  if (done.held) {
    end_put(done.revision, now);
    return true;
  }
  check_found(done, 2);
  const std::vector<KeyValue>& leader = done.found[0];
  const std::vector<KeyValue>& header = done.found[1];
  if (leader.empty() || leader[0].created != epoch_) return false;
  // Only this member puts it in its epoch: an earlier attempt was carried out.
  if (!header.empty() && header[0].value == encode_header(putting_)) {
    end_put(header[0].modified, now);
    return true;
  }
  is_surveyed_ = false;
  decline(now);
  return true;
}

void SnapshotKeeper::end_put(Revision revision, BootTime now) {
  next_at_ = now + std::max(settings_.pause, settings_.rests * Seconds(now - asked_at_));
  header_revision_ = revision;
  previous_ = std::exchange(present_, putting_);
  offered_.reset();
  has_failed_ = false;
  has_leftovers_ = true;
}

void SnapshotKeeper::on_trim(Sequence last) noexcept { log_begin_ = std::max(log_begin_, last); }

std::vector<Operation> SnapshotKeeper::clean() const {
  std::vector<std::string> kept;
  if (previous_) kept.push_back(chunk_folder(*previous_));
  if (present_) kept.push_back(chunk_folder(*present_));
  // All of former epochs, and of this one what is before the present one.
  if (!present_ || present_->epoch != epoch_) kept.push_back(epoch_folder(epoch_));
  std::vector<Operation> deletes;
  std::string from = fmt::format("{}/", snapshot_key);
  for (const std::string& folder : kept) {
    deletes.emplace_back(Delete{from, folder});
    from = end_of(folder);
  }
  return deletes;
}

// A follower

Transaction SnapshotReading::next() const {
  std::vector<Operation> reads{Read{std::string(snapshot_key)}};
  if (header_) reads.emplace_back(Read{chunk_key(*header_, chunks_)});
  return {{}, std::move(reads), {}};
}

SnapshotReading::Step SnapshotReading::on_read(const TransactionDone& done, Sequence applied) {
  check_found(done, header_ ? 2 : 1);
  std::optional<SnapshotHeader> header;
  if (!done.found[0].empty()) header = read_header(done.found[0][0]);
  if (!header_ || done.found[1].empty()) {
    if (!header || header->sequence <= applied) return {.is_missing = true};
    if (header_ == header) {
      throw Error(EBADMSG, fmt::format("the snapshot of event {} in etcd is not complete", header->sequence));
    }
    return begin(*header);
  }
  Step step;
  step.chunk = done.found[1][0].value;
  ++chunks_;
  bytes_ += step.chunk->size();
  sum_.add(*step.chunk);
  step.is_done = chunks_ == header_->chunks;
  if (bytes_ > header_->bytes ||
      (step.is_done && (bytes_ != header_->bytes || sum_.value() != header_->sum))) {
    throw Error(EBADMSG, fmt::format("the snapshot of event {} in etcd does not match its checksum",
                                     header_->sequence));
  }
  return step;
}

SnapshotReading::Step SnapshotReading::begin(const SnapshotHeader& header) {
  if (header.schema > settings_.schema) {
    throw Error(EINVAL,
                fmt::format("the snapshot of event {} in etcd has the store's schema {}, and this resourced "
                            "reads up to {}: install the version of the leader",
                            header.sequence, header.schema, settings_.schema));
  }
  if (header.bytes > settings_.most_bytes) {
    throw Error(EFBIG, fmt::format("the snapshot of event {} in etcd has {} bytes, of which {} are taken",
                                   header.sequence, header.bytes, settings_.most_bytes));
  }
  header_ = header;
  chunks_ = 0;
  bytes_ = 0;
  sum_ = {};
  return {.begun = header};
}

}  // namespace resourced::cluster
