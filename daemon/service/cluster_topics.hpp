// resource.leader, resource.cluster and resource.hand-over: this daemon as the leader of a cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster/roster.hpp"
#include "core/error.hpp"
#include "daemon/service/requests.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// A daemon that leads a cluster.
struct Leadership {
  /// Of this daemon.
  std::string name;
  std::uint64_t epoch = 0;
  /// While this is false requests are dropped, as another daemon may have taken over.
  std::function<bool()> may_serve;
  using TakeRoster = std::function<void(const std::variant<::resourced::cluster::Roster, Error>&)>;
  /// Asks etcd for the members.
  std::function<void(TakeRoster)> ask_roster;
  /// Ends the service after the answers that are on their way, and lets this member lead.
  std::function<void(const std::string& successor)> hand_over;
  /// Why nothing can be changed now, as earlier changes are not committed; nothing as long as they are.
  std::function<std::optional<std::string>()> stalled;
};

class ClusterTopics {
 public:
  /// Upper bounds of the requests that wait for etcd at the same time: of one uid or key, and of all.
  static constexpr std::size_t most_of_one = 4;
  static constexpr std::size_t most = 64;

  /// Without a `leadership` the daemon is on its own. `post` runs work later, and sends its answers.
  ClusterTopics(Requests& requests, std::optional<Leadership> leadership,
                std::function<void(std::function<void()>)> post)
      : requests_(requests), leadership_(std::move(leadership)), post_(std::move(post)) {}

  [[nodiscard]] bool may_serve() const { return !leadership_ || leadership_->may_serve(); }
  /// As Leadership has it.
  [[nodiscard]] std::optional<std::string> stalled() const {
    return leadership_ ? leadership_->stalled() : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint64_t> epoch() const;

  void leader(const Call& call);
  void members(const Call& call);
  void hand_over(const Call& call);
  /// A request has ended.
  void release(proto::RequestKey key);

 private:
  using Finish = std::function<void(proto::RequestKey, const ::resourced::cluster::Roster&)>;
  struct Question {
    std::uint64_t number = 0;
    proto::RequestKey key;
    std::string who;
  };

  /// Keeps a request until the members are known.
  void ask(const Call& call, Finish finish);
  void take(std::uint64_t number, const std::variant<::resourced::cluster::Roster, Error>& answer,
            const Finish& finish);

  Requests& requests_;
  std::optional<Leadership> leadership_;
  std::function<void(std::function<void()>)> post_;
  std::vector<Question> questions_;
  std::uint64_t last_number_ = 0;
};

}  // namespace resourced::daemon::service
