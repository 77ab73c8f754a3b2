// The work of a standby: follows the log in etcd, compares its files with the leader's, and stands for
// election.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "config/config.hpp"
#include "core/cluster/files.hpp"
#include "core/cluster/member.hpp"
#include "core/error.hpp"
#include "core/time.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/etcd/intake.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/service/cluster_topics.hpp"

namespace resourced::daemon {

class Follower final : public service::Following {
 public:
  /// Its functions must not destroy the follower.
  class Owner {
   public:
    /// The next event of the leader, for the store.
    virtual void on_event(log::Record record) = 0;
    /// The store has all events of the log on disk, for the first time.
    virtual void on_caught_up() = 0;
    /// The status has changed.
    virtual void on_standing(const Standing& standing) = 0;
    /// This daemon leads, and its store has all events on disk.
    virtual void on_elected() = 0;
    /// This daemon has lost its lease before it could lead, or has given it up after resign().
    virtual void on_ended(const std::string& why) = 0;
    /// A snapshot has come that is to take the place of the store, and ends with this event.
    virtual void on_restored(log::Sequence last) = 0;
    /// The store does not fit the cluster, or its directory cannot be written.
    virtual void on_failed(const Error& error) = 0;

   protected:
    ~Owner() = default;
  };

  /// `last` is the last event of the store, as far as it can be read, and `directory` the store's. `member`
  /// and `owner` must outlive this object.
  Follower(boost::asio::io_context& loop, const config::Cluster& settings, std::string directory,
           log::Sequence last_sequence, std::optional<log::LoggedEvent> last, log::etcd::Member& member,
           Owner& owner);

  void start();
  /// The store has this event and all before it on disk.
  void on_stored(log::Sequence last);
  /// Tells the others these digests of the files of this daemon.
  void tell_files(::resourced::cluster::FileDigests files);
  void set_credentials(const log::etcd::Credentials& credentials) {
    coordinator_.runtime().set_credentials(credentials);
  }
  /// Calls Owner::on_standing() if the status is another one than the last that was told.
  void tell();
  /// Lets another member lead.
  void resign() { coordinator_.resign(); }

  /// Whether this daemon knows another one that leads, or did.
  [[nodiscard]] bool knows_leader() const { return leader_seen_ || member_.follows(); }
  /// The time at which this daemon last knew another one that led; nothing if there was none.
  [[nodiscard]] std::optional<BootTime> leader_seen() const noexcept { return leader_seen_; }

  [[nodiscard]] Standing standing() const override;
  void ask_roster(TakeRoster take) override { coordinator_.ask_roster(std::move(take)); }

 private:
  void later(void (Follower::*work)());
  void watch_store();
  void compare_files();
  void restore(const ::resourced::cluster::SnapshotHeader& snapshot);
  void take_chunk(const std::string& chunk);
  void compare(const log::Record& record) const;
  void on_changed();
  void look();
  void fail(const Error& error);

  boost::asio::io_context& loop_;
  const std::string directory_;
  log::etcd::Member& member_;
  Owner& owner_;
  /// The last event of the store at the start.
  const std::optional<log::LoggedEvent> last_;
  /// Digests of the files of this daemon, and those of the leader, as far as it tells them.
  ::resourced::cluster::FileDigests files_;
  ::resourced::cluster::FileDigests leading_;
  std::optional<BootTime> leader_seen_;
  /// The status that was last told, without its cause.
  std::string told_;
  /// A snapshot that is being received, and its last event.
  std::optional<log::IncomingStore> incoming_;
  log::Sequence incoming_last_ = 0;
  /// The last event that the store has on disk.
  log::Sequence stored_;
  /// When the store last wrote events, or this daemon was elected.
  BootTime stored_at_{};
  bool has_caught_up_ = false;
  bool has_failed_ = false;
  /// Expires with this object, so that work for later does nothing afterwards.
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
  log::etcd::Intake intake_;
  log::etcd::Coordinator coordinator_;
};

}  // namespace resourced::daemon
