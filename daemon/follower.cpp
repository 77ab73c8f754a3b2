#include "daemon/follower.hpp"

#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/cluster/roster.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/log/etcd/leader_log.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/etcd/record_json.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"

namespace resourced::daemon {

using ::resourced::cluster::Batch;
using ::resourced::cluster::FileDigests;
using ::resourced::cluster::Roster;
using ::resourced::cluster::SnapshotHeader;

namespace {

// Returns the parts of an event that must be the same in two members, as etcd has them.
std::string compared(log::Sequence sequence, WallTime timestamp, const std::string& text) {
  log::Record record;
  record.sequence = sequence;
  record.timestamp = timestamp;
  record.text = text;
  return log::etcd::encode_record(record);
}

}  // namespace

Follower::Follower(boost::asio::io_context& loop, const config::Cluster& settings, std::string directory,
                   log::Sequence last_sequence, std::optional<log::LoggedEvent> last,
                   log::etcd::Member& member, Owner& owner)
    : loop_(loop),
      directory_(std::move(directory)),
      member_(member),
      owner_(owner),
      last_(std::move(last)),
      stored_(last_sequence),
      intake_(loop, last_sequence,
              {[this](log::Record record) { owner_.on_event(std::move(record)); },
               [this](bool is_busy) { coordinator_.set_busy(is_busy); },
               [this](const Error& error) { fail(error); },
               [this](const log::Record& record) { compare(record); }}),
      coordinator_(std::make_unique<log::etcd::LoopRuntime>(loop, settings), member) {}

void Follower::start() {
  log::etcd::Coordinator::Callbacks callbacks;
  callbacks.joined = [this](const std::string& cluster) {
    try {
      log::etcd::write_identity(directory_, cluster);
    } catch (const Error& error) {
      fail(error);
    }
  };
  callbacks.entry = [this](const Batch& batch) { intake_.take(batch); };
  callbacks.restores = [this](const SnapshotHeader& snapshot) { restore(snapshot); };
  callbacks.chunk = [this](const std::string& chunk) { take_chunk(chunk); };
  callbacks.restored = [this] { owner_.on_restored(incoming_last_); };
  // The lease is kept alive while the store catches up.
  callbacks.leads = [this] {
    intake_.when_stored([this] { owner_.on_elected(); });
    stored_at_ = os::boot_clock();
    watch_store();
  };
  callbacks.ended = [this](const std::string& why) { owner_.on_ended(why); };
  callbacks.failed = [this](const Error& error) { fail(error); };
  callbacks.changed = [this] { on_changed(); };
  coordinator_.start(std::move(callbacks));
  compare_files();
}

void Follower::on_stored(log::Sequence last) {
  stored_ = last;
  stored_at_ = os::boot_clock();
  look();
  intake_.on_stored(last);
}

void Follower::later(void (Follower::*work)()) {
  static constexpr Seconds pause{1};
  os::run_later(loop_, pause, [this, is_there = std::weak_ptr(is_there_), work] {
    if (!is_there.expired()) (this->*work)();
  });
}

// Gives the lease up that was won if the disk hangs, so that another member leads.
void Follower::watch_store() {
  const Seconds hangs = os::boot_clock() - stored_at_;
  if (hangs < log::etcd::LogLimits().longest_hang) return later(&Follower::watch_store);
  os::log_error("the store has not written an event for {:.0f} s: this daemon gives up its lease",
                hangs.count());
  coordinator_.resign();
}

// Compares the files repeatedly, as the leader may read its files again, too.
void Follower::compare_files() {
  coordinator_.ask_roster([this](const auto& answer) {
    if (const auto* roster = std::get_if<Roster>(&answer)) leading_ = leading_files(*roster);
    tell();
    later(&Follower::compare_files);
  });
}

void Follower::tell_files(FileDigests files) {
  files_ = files;
  member_.tell_files(std::move(files));
}

void Follower::restore(const SnapshotHeader& snapshot) {
  os::log_info("this daemon takes the snapshot of event {} in place of its store, which ends with event {}",
               snapshot.sequence, stored_);
  try {
    incoming_.emplace(directory_);
    incoming_last_ = snapshot.sequence;
  } catch (const Error& error) {
    fail(error);
  }
}

void Follower::take_chunk(const std::string& chunk) {
  if (has_failed_) return;
  try {
    incoming_->append(chunk);
  } catch (const Error& error) {
    fail(error);
  }
}

void Follower::compare(const log::Record& record) const {
  if (!last_ || record.sequence != last_->sequence) return;
  const std::string text = record.audience == log::Audience::nobody ? "" : record.text;
  if (compared(record.sequence, record.timestamp, text) ==
      compared(last_->sequence, last_->timestamp, last_->text))
    return;
  throw Error(ESTALE,
              fmt::format("event {} in etcd is not the one of this store: etcd was restored from an older "
                          "backup, or this store has events of its own; give it a copy of another member's "
                          "store",
                          record.sequence));
}

void Follower::on_changed() {
  const BootTime now = os::boot_clock();
  if (member_.follows() && member_.is_in_touch(now)) leader_seen_ = now;
  look();
  tell();
}

void Follower::look() {
  if (has_caught_up_ || !member_.is_abreast() || stored_ < member_.applied()) return;
  has_caught_up_ = true;
  owner_.on_caught_up();
}

void Follower::fail(const Error& error) {
  if (!std::exchange(has_failed_, true)) owner_.on_failed(error);
}

service::Following::Standing Follower::standing() const {
  const bool is_in_touch = member_.is_in_touch(os::boot_clock());
  std::string text = "standby";
  if (!member_.refusal().empty()) {
    text += fmt::format(", etcd refuses requests ({})", member_.refusal());
  } else if (!coordinator_.trouble().empty() && !is_in_touch) {
    text += fmt::format(", etcd does not answer ({})", coordinator_.trouble());
  } else if (!member_.has_joined()) {
    text += ", joins the cluster";
  } else if (const std::string obstacle = member_.obstacle(); !obstacle.empty()) {
    text += ", " + obstacle;
  } else if (const auto& leader = member_.leader()) {
    text += fmt::format(", {} leads at {}", leader->name, leader->uri);
  } else {
    text += ", no leader";
  }
  if (member_.waits_for_snapshot()) text += ", waits for a snapshot in etcd";
  return {std::move(text),
          is_in_touch && member_.has_joined() && !member_.waits_for_snapshot() && member_.obstacle().empty(),
          ::resourced::cluster::differing_files(files_, leading_).value_or(std::vector<std::string>())};
}

// A change of the cause alone does not count, as the endpoints of etcd may take turns.
void Follower::tell() {
  const Standing now = standing();
  std::string lasting = now.text.substr(0, now.text.find(" ("));
  lasting += fmt::format("{}", fmt::join(now.differs, " "));
  if (std::exchange(told_, lasting) != lasting) owner_.on_standing(now);
}

}  // namespace resourced::daemon
