#include "daemon/log/etcd/intake.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "daemon/log/etcd/packed_text.hpp"
#include "daemon/log/etcd/record_json.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds slice{500};
// Bytes of entries that are decoded at once in a turn of the loop, which takes less than a slice.
constexpr std::size_t most_direct_bytes = std::size_t{16} << 10;
constexpr std::size_t piece_bytes = std::size_t{128} << 10;
// Pieces in the thread: one is decoded while another one waits.
constexpr std::size_t most_under_way = 2;
constexpr std::size_t most_waiting_bytes = std::size_t{4} << 20;
constexpr log::Sequence most_unstored = 16384;

}  // namespace

Intake::Intake(boost::asio::io_context& loop, log::Sequence last, Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)), given_(last), stored_(last), aside_(loop) {}

void Intake::decode(Piece& piece) {
  try {
    for (const Batch& batch : piece.batches) {
      std::vector<log::Record> records = decode_records(batch.text, batch.first, batch.last);
      std::move(records.begin(), records.end(), std::back_inserter(piece.records));
    }
  } catch (const Error& error) {
    piece.failure = error;
  }
  piece.batches.clear();
}

void Intake::take(const Batch& batch) {
  if (has_failed_) return;
  const std::size_t size = unpacked_size(batch.text);
  const bool is_direct = is_empty() && admit_direct(size);
  bytes_ += size + 1;
  if (is_direct) {
    decoded_.push_back({{batch}, {}, {}, size + 1});
    decode(decoded_.back());
    return give_some();
  }
  waiting_.push_back(batch);
  decode_some();
  tell();
}

bool Intake::admit_direct(std::size_t size) {
  if (direct_bytes_ + size > most_direct_bytes) return false;
  if (direct_bytes_ == 0) {
    boost::asio::post(loop_, [this, is_there = std::weak_ptr(is_there_)] {
      if (!is_there.expired()) direct_bytes_ = 0;
    });
  }
  direct_bytes_ += size;
  return true;
}

void Intake::decode_some() {
  while (under_way_ < most_under_way && !waiting_.empty()) {
    auto piece = std::make_shared<Piece>();
    while (!waiting_.empty() && piece->bytes < piece_bytes) {
      piece->bytes += unpacked_size(waiting_.front().text) + 1;
      piece->batches.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    ++under_way_;
    aside_.run([this, piece]() -> std::function<void()> {
      decode(*piece);
      return [this, piece] {
        --under_way_;
        decoded_.push_back(std::move(*piece));
        decode_some();
        give_soon();
      };
    });
  }
}

void Intake::give_soon() {
  if (std::exchange(is_posted_, true)) return;
  boost::asio::post(loop_, [this, is_there = std::weak_ptr(is_there_)] {
    if (is_there.expired()) return;
    is_posted_ = false;
    give_some();
  });
}

void Intake::give_some() {
  const Clock::time_point end = Clock::now() + slice;
  while (!decoded_.empty() && !has_failed_) {
    Piece& piece = decoded_.front();
    while (piece.given < piece.records.size()) {
      log::Record& record = piece.records[piece.given++];
      // A replica whose process was killed may have some records of the first batch already.
      if (record.sequence <= given_) {
        try {
          callbacks_.had(record);
        } catch (const Error& error) {
          has_failed_ = true;
          return callbacks_.failed(error);
        }
        continue;
      }
      given_ = record.sequence;
      callbacks_.record(std::move(record));
      if (Clock::now() >= end && piece.given < piece.records.size()) return give_soon();
    }
    if (piece.failure) {
      has_failed_ = true;
      return callbacks_.failed(*piece.failure);
    }
    bytes_ -= piece.bytes;
    decoded_.pop_front();
    if (!decoded_.empty() && Clock::now() >= end) return give_soon();
  }
  tell();
  finish();
}

void Intake::on_stored(log::Sequence last) {
  stored_ = last;
  tell();
  finish();
}

void Intake::when_stored(std::function<void()> work) {
  when_stored_ = std::move(work);
  finish();
}

void Intake::finish() {
  if (is_stored() && when_stored_) std::exchange(when_stored_, nullptr)();
}

// Reports at other limits when entries are many than when they are few again, so that the member reads on
// before all are done.
void Intake::tell() {
  const log::Sequence unstored = given_ > stored_ ? given_ - stored_ : 0;
  const bool is_much = bytes_ > most_waiting_bytes || unstored > most_unstored;
  const bool is_little = bytes_ <= most_waiting_bytes / 2 && unstored <= most_unstored / 2;
  if (is_busy_ ? !is_little : !is_much) return;
  is_busy_ = !is_busy_;
  callbacks_.busy(is_busy_);
}

}  // namespace resourced::daemon::log::etcd
