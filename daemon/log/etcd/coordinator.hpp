// Runs a member of a cluster (core/cluster) in the loop of its process: sends its requests to etcd, passes
// the outcomes and the time back, and calls the owner with everything else that follows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cluster/member.hpp"
#include "core/cluster/roster.hpp"
#include "core/error.hpp"
#include "daemon/log/etcd/runtime.hpp"

namespace resourced::daemon::log::etcd {

using Member = ::resourced::cluster::Member;

class Coordinator {
 public:
  /// Each callback is called for the field of cluster::Effects with its name. Callbacks may call commit() and
  /// resign(), and must not destroy the coordinator.
  struct Callbacks {
    std::function<void(const std::string&)> joined = [](const auto&) {};
    std::function<void(const ::resourced::cluster::Batch&)> entry = [](const auto&) {};
    /// The owner answers this with offer() or decline().
    std::function<void()> wants_snapshot = [] {};
    std::function<void(const ::resourced::cluster::SnapshotHeader&)> restores = [](const auto&) {};
    std::function<void(const std::string&)> chunk = [](const auto&) {};
    std::function<void()> restored = [] {};
    std::function<void()> leads = [] {};
    std::function<void(::resourced::cluster::Sequence)> committed = [](auto) {};
    std::function<void(const std::string&)> ended;
    std::function<void(const Error&)> failed;
    /// Called after every step of the member.
    std::function<void()> changed = [] {};
  };
  /// Takes over a member whose requests to an earlier coordinator get no outcome.
  Coordinator(std::unique_ptr<Runtime> runtime, Member& member)
      : member_(member), runtime_(std::move(runtime)) {}

  void start(Callbacks callbacks);
  void commit(::resourced::cluster::Batch batch);
  /// Same as Member::set_busy().
  void set_busy(bool is_busy);
  void resign(std::optional<std::string> successor = std::nullopt);

  void offer(::resourced::cluster::Snapshot snapshot);
  void decline();
  /// Same as Member::keep_holders().
  void keep_holders(std::string text);

  using TakeRoster = std::function<void(const std::variant<::resourced::cluster::Roster, Error>&)>;
  /// Asks etcd for the members, and calls `take` from the loop with an answer that is not older than the
  /// question. Questions within a tenth of a second share one request, so that they do not delay commits.
  void ask_roster(TakeRoster take);

  [[nodiscard]] const Member& member() const noexcept { return member_; }
  /// Why etcd did not carry out the last request; empty if it did.
  [[nodiscard]] const std::string& trouble() const noexcept { return runtime_->trouble(); }
  [[nodiscard]] Runtime& runtime() noexcept { return *runtime_; }
  [[nodiscard]] BootTime now() const { return runtime_->now(); }

 private:
  void carry_out(::resourced::cluster::Effects effects);
  void arm();
  void on_time();
  void send_roster();

  Member& member_;
  Callbacks callbacks_;
  /// Questions about the members that wait for the next request.
  std::vector<TakeRoster> questions_;
  bool is_asking_ = false;
  /// The earliest time of the next request.
  BootTime next_question_{};
  /// Declared last and destroyed first, so that it calls no function of an object that is destroyed.
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace resourced::daemon::log::etcd
