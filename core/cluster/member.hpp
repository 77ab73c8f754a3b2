// A member of a cluster of daemons that have their log in etcd, as a state machine: it reads no clock and
// sends nothing; its owner sends the requests of each Effects to etcd and passes the outcomes back.
//
// One member at a time leads. Its epoch is the revision that created the key `leader`, which is bound to the
// lease of the member. Every commit is one transaction that compares the epoch and the last revision of
// `head`, so a member that does not lead any more, or does not know it yet, changes nothing. An outcome that
// is not known is asked for by sending the same transaction again: if the first one was carried out, `head`
// has moved.
//
// The keys are in keys.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/files.hpp"
#include "core/cluster/keys.hpp"
#include "core/cluster/requests.hpp"
#include "core/cluster/roster.hpp"
#include "core/cluster/snapshots.hpp"
#include "core/error.hpp"
#include "core/time.hpp"

namespace resourced::cluster {

using RequestId = std::uint64_t;

/// Events of the log that are committed together.
struct Batch {
  Sequence first = 0;
  Sequence last = 0;
  std::string text;
  /// Same as the text of Member::keep_holders(), for holders that change with these events: etcd gets both or
  /// neither. Empty where nothing is changed.
  std::optional<std::string> holders = std::nullopt;
};

struct Settings {
  /// Unique among the members.
  std::string name;
  /// Where clients reach this member.
  std::string uri;
  /// Unique to this object over all processes and times.
  std::string process;
  /// Of the program.
  std::string version;
  Seconds lease_ttl{3};
  /// So long no other member takes over from a leader that has named its successor.
  Seconds hand_over{1};
  /// The member stops serving this long before its lease can end.
  Seconds margin{0.5};
  /// Between two looks at the log, unless changes are watched.
  Seconds poll{0.1};
  /// If they are: a watch may have been lost without a sign.
  Seconds watched_poll{1};
  /// At least so long is between two looks that changes ask for.
  Seconds pace{0.02};
  /// So long a watch may be silent about a change that a look has found.
  Seconds silence{0.5};
  /// Before a request without an outcome is sent again.
  Seconds retry{0.05};
  /// Before one that etcd has refused is.
  Seconds retry_refused{1};
  /// Before an entry of this member that etcd has refused is put again: a look without it tells more.
  Seconds tell_refused{5};
  /// A longer text is put in parts of this size.
  std::size_t part_bytes = std::size_t{256} << 10;
  /// Parts that are read at once, and batches if nothing is known about their size.
  std::size_t page = 8;
  /// Events that are read at once: at first, and at most as long as their batches have less than so many
  /// bytes.
  Sequence least_reach = 64;
  Sequence most_reach = 1024;
  std::size_t page_bytes = std::size_t{1} << 20;
  /// Events that stay in etcd for members that are behind, as far as they take no more bytes than this.
  /// Those after the last snapshot stay, too.
  Sequence keep = 50000;
  std::size_t keep_bytes = std::size_t{128} << 20;
  /// So many times as much stays at most while no snapshot can be made: the log must not fill etcd.
  std::size_t keep_without = 4;
  /// After so many commits, older events are removed.
  std::size_t trim_after = 1000;
  SnapshotSettings snapshots = {};
  /// Of all revisions of etcd, at least so many stay readable, and at most twice as many.
  Revision compact_after = 10000;
};

/// The replica of a member when it joins.
struct Replica {
  /// The cluster that it belongs to; nothing for one that never belonged to any.
  std::optional<std::string> cluster;
  /// Its last event.
  Sequence applied = 0;
  /// Begins the cluster with these events, where it is not there yet.
  bool founds = false;
};

struct Effects {
  /// Each is sent at once, in any order.
  std::vector<std::pair<RequestId, Request>> requests;
  /// The replica belongs to this cluster from now on. To be recorded before the entries.
  std::optional<std::string> joined;
  /// Events for the replica, in order. The first batch begins with some that the replica has, as far as
  /// etcd still has the last of them: the owner compares it, since a store with other events does not fit.
  std::vector<Batch> entries;
  /// A leader wants a snapshot of its replica, of some event up to `applied()`: by offer() or decline().
  bool wants_snapshot = false;
  /// The log lacks events that the replica lacks. A snapshot comes in its place: the chunks of this one
  /// follow, from the first, and those of an earlier one are void.
  std::optional<SnapshotHeader> restores;
  std::vector<std::string> chunks;
  /// That was the last chunk, and the member has ended. Another one begins with the new replica.
  bool restored = false;
  /// The member leads from now on: its replica is the whole log once it has all `entries`.
  bool leads = false;
  /// All events up to this one are in the log.
  std::optional<Sequence> committed;
  /// A line for the log of the daemon.
  std::optional<std::string> warning;
  /// The member has ended: it does not lead any more, or has resigned. Batches without a `committed` may be
  /// in the log or not.
  std::optional<std::string> ended;
  /// The member has ended, and its replica does not fit the cluster: trying again does not help.
  std::optional<Error> failed;
};

class Member {
 public:
  Member(Settings settings, Replica replica)
      : settings_(std::move(settings)),
        cluster_(std::move(replica.cluster)),
        founds_(replica.founds),
        applied_(replica.applied),
        is_compared_(replica.applied == 0),
        snapshots_(settings_.snapshots) {}

  /// The time of next_deadline() has come, or the start. An earlier or later call does no harm.
  [[nodiscard]] Effects tick(BootTime now);
  /// Ignores a request whose outcome is not awaited any more.
  [[nodiscard]] Effects answer(RequestId id, const Outcome& outcome, BootTime now);
  /// Appends events to the log. Requires a member that leads, and that `batch` follows the last one.
  [[nodiscard]] Effects commit(Batch batch, BootTime now);
  /// The owner has more entries than it should keep: there are none until it is not busy any more.
  [[nodiscard]] Effects set_busy(bool is_busy, BootTime now);
  /// Commits the batches that wait, ends the lease, so that another member can lead at once, and ends. A
  /// `successor` is the name of the member that is to lead.
  [[nodiscard]] Effects resign(BootTime now, std::optional<std::string> successor = std::nullopt);
  /// The answer to Effects::wants_snapshot. Does nothing once the member does not lead any more.
  [[nodiscard]] Effects offer(Snapshot snapshot, BootTime now);
  void decline(BootTime now) { snapshots_.decline(now); }
  /// For the other members, with the next entry of this one.
  void tell_files(FileDigests files) { files_ = std::move(files); }
  /// Keeps a text in etcd for the member that leads next: the holders of resources, which it reads as
  /// holders(). It is put beside the commits, which do not wait for it, and if possible before a resignation;
  /// a crash may lose it. It follows the holders of batches that wait, and those of a later batch replace it.
  /// Ignored unless this member leads.
  [[nodiscard]] Effects keep_holders(std::string text, BootTime now);
  /// None of the requests so far will get its outcome, nor Effects::wants_snapshot its answer.
  void disconnect(BootTime now);

  [[nodiscard]] std::optional<BootTime> next_deadline() const;
  [[nodiscard]] bool leads() const noexcept { return role_ == Role::leading; }
  [[nodiscard]] bool has_ended() const noexcept { return role_ == Role::ended; }
  [[nodiscard]] bool has_joined() const noexcept { return role_ != Role::joining; }
  /// Whether the last look found nothing more than the replica was given.
  [[nodiscard]] bool is_abreast() const noexcept { return is_abreast_; }
  /// Whether this member leads, and no other can lead at this time.
  [[nodiscard]] bool may_serve(BootTime now) const noexcept { return leads() && !is_over() && now < fence(); }
  /// When another member may lead at the earliest.
  [[nodiscard]] BootTime may_serve_until() const noexcept { return fence(); }
  /// Whether etcd has answered within the time of a lease.
  [[nodiscard]] bool is_in_touch(BootTime now) const noexcept { return lease_ && now < fence(); }
  /// The leader as it was last seen.
  [[nodiscard]] const std::optional<Leader>& leader() const noexcept { return leader_; }
  /// Whether that is another process.
  [[nodiscard]] bool follows() const noexcept { return leader_ && leader_->process != settings_.process; }
  /// Why etcd refuses requests; empty if it does not. A refused put counts until another one is carried out,
  /// as etcd answers reads meanwhile.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// Whether the replica lacks events that etcd has no more, and etcd has no snapshot with them yet.
  [[nodiscard]] bool waits_for_snapshot() const noexcept { return waits_for_snapshot_; }
  /// Why no member may lead: the store of one has more events than the log. Empty if none has said so.
  [[nodiscard]] std::string obstacle() const;
  [[nodiscard]] const std::string& name() const noexcept { return settings_.name; }
  /// The id of the cluster. Requires has_joined().
  [[nodiscard]] const std::string& cluster() const noexcept { return *cluster_; }
  [[nodiscard]] Revision epoch() const noexcept { return epoch_; }
  [[nodiscard]] Sequence applied() const noexcept { return applied_; }
  /// The text of the former leader, as this member has found it when it began to lead; empty for none.
  [[nodiscard]] const std::string& holders() const noexcept { return holders_; }
  /// Batches that are not committed yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return queue_.size(); }

 private:
  enum class Role : std::uint8_t { joining, following, leading, ended };
  /// The purpose of the request whose outcome is awaited besides that of the lease.
  enum class Step : std::uint8_t {
    join,
    look,
    part,
    restore,
    report_ahead,
    evict,
    campaign,
    put_part,
    commit,
    check,
    name_successor,
    survey,
    snapshot,
    trim,
    compact,
    revoke
  };

  struct Lease {
    LeaseId id = 0;
    Seconds ttl{};
    /// When the last request for it that was answered was sent.
    BootTime confirmed{};
  };
  struct Pending {
    RequestId id = 0;
    BootTime sent{};
  };
  struct Watching {
    RequestId id = 0;
    bool is_in_place = false;
    /// Changes up to this revision are known: it was told, or the look before the watch has found them.
    Revision told = 0;
    /// A later change, which a look has found at this time.
    std::optional<Revision> missed = std::nullopt;
    BootTime missed_at{};
  };
  /// An entry whose text is in parts, as far as they are read.
  struct Incomplete {
    Batch batch;
    Revision epoch = 0;
    std::size_t parts = 0;
    std::size_t read = 0;
  };

  /// The member that has put `ahead`.
  struct Ahead {
    std::string name;
    Sequence applied = 0;
  };

  void proceed(BootTime now, Effects& effects);
  void tend_lease(BootTime now, Effects& effects);
  void drop_lease();
  void note_refusal(const std::string& why, bool is_put);
  void on_lease(const Outcome& outcome, BootTime sent, BootTime now, Effects& effects);
  void suspect_leases(const std::vector<KeyValue>& leader, const std::vector<KeyValue>& own, BootTime now);
  void tend_suspects(BootTime now, Effects& effects);
  void on_lease_found(const Outcome& outcome, BootTime now);
  /// Whether no lease deletes the key, so that it says nothing about a running member.
  [[nodiscard]] bool is_void(const KeyValue& key) const;
  void report_ahead(const std::vector<KeyValue>& head, const std::vector<KeyValue>& ahead, BootTime now,
                    Effects& effects);
  /// Whether there are holders to put, and no earlier ones are under way, which could come later and replace
  /// them.
  [[nodiscard]] bool may_put_holders() const;
  void tend_holders(BootTime now, Effects& effects);
  void on_holders(const Outcome& outcome, BootTime now);
  void on_step(Step step, const Outcome& outcome, BootTime now, Effects& effects);
  void on_joined(const TransactionDone& done, BootTime now, Effects& effects);
  void on_look(const TransactionDone& done, BootTime now, Effects& effects);
  [[nodiscard]] Read log_ahead() const;
  void adapt_reach(const std::vector<KeyValue>& found, bool is_behind);
  void plan_look(bool is_vacant, BootTime now);
  void lead(const TransactionDone& look, BootTime now, Effects& effects);
  void stand_for_election(const TransactionDone& look, BootTime now, Effects& effects);
  void tend_entry(const std::vector<KeyValue>& found);
  void tend_namesake(BootTime now);
  void tend_watch(Revision newest, BootTime now, Effects& effects);
  void on_watch(const Outcome& outcome, BootTime now);
  void take_entries(const std::vector<KeyValue>& found, Effects& effects);
  void lack_events(BootTime now);
  void on_restore(const TransactionDone& done, BootTime now, Effects& effects);
  void on_part(const TransactionDone& done, Effects& effects);
  void on_commit(const TransactionDone& done, BootTime now, Effects& effects);
  void on_check(const TransactionDone& done, BootTime now, Effects& effects);
  /// False if events are missing before it.
  [[nodiscard]] bool take_entry(const KeyValue& entry);
  void end_entry(Effects& effects);
  void finish_batch(Revision head, Effects& effects);
  void send(Step step, Request request, BootTime now, Effects& effects);
  void send_lead(BootTime now, Effects& effects);
  void send_upkeep(BootTime now, Effects& effects);
  [[nodiscard]] Sequence trim_bound() const;
  [[nodiscard]] Transaction trim() const;
  [[nodiscard]] Transaction join() const;
  [[nodiscard]] Transaction look(BootTime now);
  [[nodiscard]] Transaction campaign() const;
  [[nodiscard]] static Transaction evict(const KeyValue& leader);
  [[nodiscard]] Transaction put_part() const;
  [[nodiscard]] Transaction commit() const;
  [[nodiscard]] Transaction check(BootTime now);
  [[nodiscard]] Transaction guarded(std::vector<Operation> then) const;
  [[nodiscard]] Put own_entry() const;
  [[nodiscard]] static std::string mark_of(const Put& own);
  /// The entry of this member, if it differs from the one that etcd has.
  [[nodiscard]] std::optional<Put> news(BootTime now);
  [[nodiscard]] std::size_t parts_of(const Batch& batch) const noexcept;
  /// Ends this member, with all that waits for etcd.
  void leave();
  void end(Effects& effects, std::string why);
  void fail(Effects& effects, int errnum, const std::string& why);
  /// The end of the lease has been asked for.
  [[nodiscard]] bool is_over() const noexcept { return pending_ && step_ == Step::revoke; }
  /// Nothing else is left to do before the lease can end.
  [[nodiscard]] bool waits_for_holders() const noexcept {
    return leads() && resigns_ && !successor_ && queue_.empty() && next_holders_;
  }
  [[nodiscard]] BootTime fence() const noexcept {
    return lease_ ? lease_->confirmed + lease_->ttl - settings_.margin : BootTime{};
  }

  Settings settings_;
  FileDigests files_;
  std::optional<std::string> cluster_;
  bool founds_;
  /// The last event that the replica has, or was given as an entry.
  Sequence applied_;
  Role role_ = Role::joining;
  RequestId last_id_ = 0;

  std::optional<Lease> lease_;
  std::optional<Pending> lease_pending_;
  /// When the next request for the lease is due.
  BootTime lease_due_{};

  std::string holders_;
  /// The holders to put beside the commits; unset once they are in etcd.
  std::optional<std::string> next_holders_;
  /// The holders that are being put into etcd.
  std::string put_holders_;
  std::optional<Pending> holders_pending_;
  BootTime holders_due_{};
  /// The revision that last modified `holders`; 0 if it is not there.
  Revision holders_revision_ = 0;

  std::optional<Pending> pending_;
  Step step_ = Step::join;
  /// Whether the pending transaction puts keys.
  bool puts_ = false;
  /// When the next step is due, unless something is to be committed.
  BootTime due_{};

  std::optional<Watching> watch_;
  /// The next one is sent at the first look from this time on.
  BootTime watch_due_{};
  /// When the last look was sent, and the revision of etcd that the last answered one has seen.
  BootTime looked_at_{};
  Revision seen_ = 0;
  /// A change that the look under way may have come before.
  std::optional<Revision> changed_;

  /// As it was last seen.
  std::optional<Leader> leader_;
  /// Another process of this member's name, without a pause longer than a lease between looks.
  struct Namesake {
    BootTime since;
    BootTime seen;
  };
  std::optional<Namesake> namesake_;
  std::string refusal_;
  /// Whether a put or a grant was refused.
  bool is_put_refused_ = false;
  /// Events that the next look reads; 0 for the next batches, whatever their size.
  Sequence reach_ = 0;
  bool is_busy_ = false;
  std::optional<Incomplete> incomplete_;
  /// The last event of an entry whose parts were not there.
  Sequence without_parts_ = 0;
  /// The entry with the last event of the replica was read, if etcd still has it.
  bool is_compared_;
  bool is_abreast_ = false;
  /// While it lacks events that the log has no more.
  std::optional<SnapshotReading> restoring_;
  bool waits_for_snapshot_ = false;
  /// What `members/NAME` has, with its lease; empty if that is not known.
  std::string told_;
  std::optional<BootTime> told_at_;
  std::string telling_;
  /// Until then the entry is not put again.
  BootTime tell_due_{};
  /// As of the last look with this lease. A standby does not replace the entry of another process, which goes
  /// with the lease of its owner.
  bool entry_is_free_ = false;

  Revision epoch_ = 0;
  /// The revision that last modified `head`; 0 if it is not there.
  Revision head_revision_ = 0;
  std::deque<Batch> queue_;
  /// Parts of the first batch that are put already.
  std::size_t parts_put_ = 0;
  std::size_t commits_ = 0;
  SnapshotKeeper snapshots_;
  EntrySizes sizes_;
  /// Events up to this one are removed by the trim that is under way, or was last.
  Sequence trimmed_ = 0;
  std::optional<Revision> compact_;
  /// Older revisions are forgotten once enough others have followed.
  std::optional<Revision> compact_next_;
  BootTime check_due_{};
  BootTime retry_at_{};
  bool resigns_ = false;
  /// To be named before the lease ends.
  std::optional<std::string> successor_;
  /// The lease of the last campaign, to which a key `leader` of this process is bound.
  LeaseId campaigned_ = 0;
  /// Leases that are not there, though keys name them, and leases to ask for.
  std::set<LeaseId> gone_leases_;
  std::vector<LeaseId> suspects_;
  std::optional<Pending> suspect_pending_;
  BootTime suspect_due_{};
  /// As of the last look.
  std::optional<Ahead> ahead_;
  Sequence head_ = 0;
  /// Whether etcd has refused that this member puts `ahead`.
  bool is_report_refused_ = false;
  /// When it was first seen that nobody leads.
  std::optional<BootTime> vacant_since_;
};

}  // namespace resourced::cluster
