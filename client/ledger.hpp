// The ledger of allocations as a scheduler knows it (docs/protocol.md, resource.acquire and resource.alloc):
// a view that an acquisition with AcquisitionOptions::ledger keeps up to date, and changes that survive lost
// answers. client/allocations.hpp has the changes themselves, and functions that send them without a view.
//
// Threads: all functions are for the thread of the connection; other threads get copies of list().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/allocations.hpp"
#include "client/connection.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

/// The ledger of an acquisition, which owns it (Acquisition::ledger).
///
/// A change gets one answer. If the connection is lost before, the change may have been made or not: it is
/// sent again, with `repeat`, once the acquisition is held again, and then answered. A change that was
/// requested while nothing was held is sent at that time, too. If it names targets that have other ranks by
/// then, or are not in the acquisition any more, it is not sent: its answer is a success if the list shows
/// what it does, else ESTALE, and then it may be requested again with the present ranks. A change that the
/// daemon cannot carry out now (EAGAIN, or EHOSTUNREACH of one that does not lead) is sent again after half a
/// second. Once the acquisition has ended nothing is sent any more, and no handler is called.
class Ledger {
 public:
  using Handler = Connection::Handler;
  /// The partition in which an allocation was made, and its id.
  using Name = std::pair<std::string, std::string>;
  struct Entry {
    Allocation allocation;
    /// The number of the event up to which this is true.
    std::uint64_t sequence = 0;
  };

  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Returns the allocations on the targets of the acquisition and of its partition, as of the last response
  /// and the answers to the changes of this ledger. It is up to date before the observer and the handlers of
  /// changes are called. While the acquisition is lost it stays as it was.
  [[nodiscard]] const std::map<Name, Entry>& list() const noexcept { return list_; }
  /// Returns the names of the allocations in changes without an answer that were sent, or will be.
  [[nodiscard]] std::vector<Name> pending() const { return names(false); }
  /// Returns the names of the allocations in changes whose answer was lost, and which will be sent again.
  [[nodiscard]] std::vector<Name> unknown() const { return names(true); }

  /// Make a change. Allocations are made in the partition of the acquisition, whatever their `partition` is;
  /// frees and updates without a partition mean allocations of that partition. `handler` gets the answer: no
  /// error; a refusal as of client::change() and client::update(), which has changed nothing; or a local
  /// EPROTO for an answer that cannot be read. It is not called from inside these functions. Both throw Error
  /// EALREADY if a change of the same allocation has no answer yet, EINVAL for a string that is not UTF-8 and
  /// for an allocation of the partition of another ledger of this connection, which has to change it, and
  /// ECANCELED once the acquisition has ended; ENOTCONN in a forked child. The list does not have `nslots` of
  /// an allocation to which resources were added.
  void change(LedgerChange wanted, Handler handler);
  void update(AllocationUpdate wanted, Handler handler);

  /// Sends the unknown changes again. The acquisition does so by itself whenever it is held again.
  void resync();

 private:
  friend class Acquisition;

  using Wanted = std::variant<LedgerChange, AllocationUpdate>;
  struct Change {
    Wanted wanted;
    Handler handler;
    std::set<Name> names;
    /// The request, from when it is sent until its answer or its loss.
    std::optional<Connection::RequestId> request = std::nullopt;
    bool is_unknown = false;
  };

  /// `connection` must outlive the ledger; changes without a partition are of this one. One that is not in
  /// use has no list and makes no changes.
  Ledger(Connection& connection, std::string partition, bool in_use);
  ~Ledger();

  /// The changes that others have made up to an event: first they freed, then they made or changed.
  struct News {
    std::vector<Freed> freed;
    std::vector<Allocation> changed;
    std::vector<Name> expired;
    std::uint64_t sequence = 0;
  };

  // The acquisition calls begin() when it is held, with the present allocations, and the targets when it was
  // held before and now; take() when others have changed some; leave() when it is lost; and close() when it
  // has ended.
  void begin(const std::vector<Allocation>& present, std::uint64_t sequence, const rset::ResourceSet& former,
             const rset::ResourceSet& targets);
  void take(const News& news);
  void leave();
  void close();

  void add(Change change);
  void refuse_partitions_of_others(const std::set<Name>& names) const;
  [[nodiscard]] Connection::RequestId send(std::uint64_t number, const Change& change);
  void receive(std::uint64_t number, const Response& response);
  /// Whether a change names ranks that are those of other targets now, or of none.
  [[nodiscard]] bool is_moved(const Change& change, const rset::ResourceSet& former,
                              const rset::ResourceSet& targets) const;
  /// Removes a change of targets that have moved, and answers it from the loop.
  void answer_moved(std::uint64_t number, bool is_made);
  /// Applies a change of this ledger or, if it is not `own`, of another one of the connection.
  void apply(const Wanted& wanted, std::uint64_t sequence, bool own);
  /// Whether nothing newer than an event is known about an allocation.
  [[nodiscard]] bool is_news(const Name& name, std::uint64_t sequence);
  void put(const Allocation& allocation, std::uint64_t sequence);
  void remove(const Freed& freed, std::uint64_t sequence);
  [[nodiscard]] std::vector<Name> names(bool unknown) const;

  Connection& connection_;
  const std::string partition_;
  /// The ledgers of the connection, this one among them if it is in use and has not ended.
  const std::shared_ptr<std::set<Ledger*>> ledgers_;
  bool is_held_ = false;
  bool has_ended_ = false;
  std::map<Name, Entry> list_;
  /// The changes without an answer, in their order.
  std::map<std::uint64_t, Change> changes_;
  std::uint64_t last_change_ = 0;
  /// For each allocation in these changes, the number of the last event by somebody else that is known.
  std::map<Name, std::uint64_t> open_;
  std::optional<Connection::TimerId> timer_;
  /// Timers of answers since the last begin().
  std::vector<Connection::TimerId> answers_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
