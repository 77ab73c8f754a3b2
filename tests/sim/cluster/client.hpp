// Clients of a simulated cluster. Each connects to a running node, leaves it if that node does not lead or
// does not answer, and checks every message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "etcd.hpp"
#include "node.hpp"
#include "world.hpp"

namespace resourced::sim {

class Client;

/// Shared by the clients of a cluster.
struct Site {
  World& world;
  Etcd& etcd;
  std::vector<std::unique_ptr<Node>>& nodes;
  Configuration configuration;
  std::map<ClientId, Client*> connections = {};
  std::uint64_t last_client = 0;
  /// The last event whose answer has left its daemon. Every later request must show it.
  std::uint64_t answered = 0;
  std::uint64_t answers = 0;
  std::uint64_t deltas = 0;
  std::uint64_t pictures = 0;

  /// Called when the answer to the change of this event leaves its daemon.
  void answer(std::uint64_t sequence, const std::string& change);
};

class Client {
 public:
  explicit Client(Site& site) : site_(site) {}
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&&) = delete;
  Client& operator=(Client&&) = delete;

  /// Lets the client take its turn. A client that `rests` makes no changes.
  void act(bool rests);
  virtual void receive(Node& node, const proto::Message& message) = 0;
  /// Called when the connections of the node have ended.
  void on_closed(const Node& node);
  /// Checks the client's results at the end, when nothing happens any more. Throws Violation.
  virtual void judge() const = 0;

 protected:
  using Handled = std::function<void(const Node::Handled&)>;

  virtual void go_on(bool rests) = 0;
  /// Called when the connection has ended: requests on it are not answered any more.
  virtual void lose() = 0;

  /// Sends a request to the present node, and returns its matchtag.
  std::uint32_t request(
      const std::string& topic, const nlohmann::json& payload, std::uint8_t flags = 0,
      Handled handled = [](const Node::Handled& /*handled*/) {});
  void leave();
  void set_stalled(bool stalls);
  [[nodiscard]] bool is_stalled() const noexcept { return is_stalled_; }
  [[nodiscard]] bool was_stalled() const;
  [[nodiscard]] World& world() const noexcept { return site_.world; }

  Site& site_;

 private:
  struct Link {
    std::size_t node = 0;
    ClientId id{};
  };
  bool connect();

  std::optional<Link> link_;
  std::uint32_t last_matchtag_ = 0;
  bool is_stalled_ = false;
};

/// A client that drains a rank of its own with unique reasons, and ends these drains.
[[nodiscard]] std::unique_ptr<Client> make_operator(Site& site, unsigned rank);
/// A client that acquires a partition, or the targets in no partition, and allocates cores.
[[nodiscard]] std::unique_ptr<Client> make_scheduler(Site& site, std::string partition);
/// A client that asks for the status and the members.
[[nodiscard]] std::unique_ptr<Client> make_reader(Site& site);
/// A client that follows the journal.
[[nodiscard]] std::unique_ptr<Client> make_follower(Site& site);
/// A client that makes other nodes lead.
[[nodiscard]] std::unique_ptr<Client> make_administrator(Site& site);
/// A client that takes the resources from schedulers.
[[nodiscard]] std::unique_ptr<Client> make_evictor(Site& site);

}  // namespace resourced::sim
