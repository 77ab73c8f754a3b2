// A scheduler of a simulated cluster: it acquires at the leader, folds each change into its picture, and
// acquires again at the next leader.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "checks.hpp"
#include "client.hpp"
#include "inventory.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;

class SchedulerOfCluster final : public Client {
 public:
  SchedulerOfCluster(Site& site, std::string partition) : Client(site), partition_(std::move(partition)) {}

  void receive(Node& node, const proto::Message& message) override {
    if (message.matchtag != acquire_) return receive_change(message);
    const auto errnum = message.errnum();
    if (errnum != 0) {
      demand(errnum == EHOSTUNREACH || errnum == ECANCELED || errnum == EBUSY || errnum == ECONNABORTED,
             fmt::format("an acquire ends with {}: {}", errnum, message.text()));
      return leave();
    }
    const json body = json::parse(message.text());
    if (!view_) return begin(node, body);
    ++site_.deltas;
    view_->apply(body);
    // The picture must be the state after some event in etcd, not before the previous one.
    while (!shows(*view_, site_.etcd.state_after(seen_))) {
      demand(seen_ < site_.etcd.last(),
             [&] { return "a change that leads to no state in etcd: " + body.dump(); });
      ++seen_;
    }
  }

  void judge() const override {
    demand(view_.has_value(), "a scheduler has no response");
    demand(!change_, "a change of the ledger has no answer");
    demand(shows(*view_, site_.etcd.state_after(site_.etcd.last())),
           "the picture of a scheduler is not the last state");
    for (const auto& [id, outcome] : outcomes_) {
      demand(!outcome || *outcome == (site_.etcd.find(id) > 0),
             fmt::format("the allocation {} was {}", id,
                         *outcome ? "answered, and is not in the log" : "refused, and is in the log"));
    }
  }

 private:
  struct Change {
    std::uint32_t matchtag = 0;
    std::string id;
    bool allocates = true;
  };

  void go_on(bool rests) override {
    if (!acquire_) {
      json payload{{"allocations", true}};
      if (!partition_.empty()) payload["partition"] = partition_;
      floor_ = site_.answered;
      acquire_ = request("resource.acquire", payload, proto::flag::streaming,
                         [this](const Node::Handled& handled) { seen_ = handled.applied; });
      return;
    }
    if (is_stalled() ? rests || world().chance(0.3) : !rests && world().chance(0.03))
      return set_stalled(!is_stalled());
    if (rests || !view_ || change_ || is_stalled() || !world().chance(0.3)) return;
    if (!held_.empty() && world().chance(0.4)) return free();
    allocate();
  }

  void begin(const Node& node, const json& body) {
    view_.emplace(body);
    const cluster::Revision epoch = body.at("epoch");
    demand(epoch == node.epoch(), "another epoch than that of the leader");
    demand(epoch >= epoch_, fmt::format("epoch {} after epoch {}", epoch, epoch_));
    epoch_ = epoch;
    demand(seen_ >= floor_,
           fmt::format("an acquire after event {} gets the state after event {}", floor_, seen_));
    const Reference& state = site_.etcd.state_after(seen_);
    Reference::Ranks left;
    for (unsigned rank = 0; rank < site_.configuration.hosts.size() / 2; ++rank) left.insert(rank);
    const Reference::Ranks all = without(state.present(), state.excluded());
    check_first(*view_, state, partition_.empty() ? without(all, left) : shared(all, left));
  }

  void allocate() {
    if (view_->up.empty()) return;
    const auto rank = *std::next(view_->up.begin(), static_cast<int>(world().below(view_->up.size())));
    text::Hostlist hosts;
    hosts.append(site_.configuration.hosts[rank]);
    const auto core = static_cast<text::IdSet::Id>(world().below(4));
    const rset::ResourceSet resources({{text::IdSet{rank}, text::IdSet{core}, {}}}, hosts);
    Change change;
    change.id = fmt::format("{}-{}", partition_, outcomes_.size());
    outcomes_[change.id];
    change.matchtag = request("resource.alloc", {{"id", change.id}, {"R", resources.to_json()}});
    change_ = change;
  }
  void free() {
    Change change;
    change.id = held_[world().below(held_.size())];
    change.allocates = false;
    change.matchtag = request("resource.free", {{"id", change.id}});
    change_ = change;
  }

  void receive_change(const proto::Message& message) {
    demand(change_ && message.matchtag == change_->matchtag, "a response that no scheduler waits for");
    const Change change = *std::exchange(change_, std::nullopt);
    const auto errnum = message.errnum();
    demand(errnum == 0 || errnum == EBUSY || errnum == EAGAIN || errnum == ENOENT || errnum == EHOSTDOWN,
           fmt::format("a change of the ledger ends with {}: {}", errnum, message.text()));
    if (change.allocates) {
      outcomes_[change.id] = errnum == 0;
      if (errnum != 0) return;
      held_.push_back(change.id);
      if (!was_stalled()) site_.answer(site_.etcd.find(change.id), "the allocation " + change.id);
      demand(site_.etcd.find(change.id) > 0, "an allocation is answered, and not in etcd");
    } else if (errnum == 0) {
      std::erase(held_, change.id);
      demand(!site_.etcd.state_after(site_.etcd.last()).allocations().contains({partition_, change.id}),
             "a free is answered, and not in etcd");
    }
  }

  void lose() override {
    acquire_.reset();
    view_.reset();
    change_.reset();
  }

  std::string partition_;
  std::optional<std::uint32_t> acquire_;
  std::optional<View> view_;
  cluster::Revision epoch_ = 0;
  std::uint64_t floor_ = 0;
  /// The event after which the picture was true, or an earlier one.
  std::uint64_t seen_ = 0;
  std::optional<Change> change_;
  /// The allocations that were answered with success.
  std::vector<std::string> held_;
  /// Whether each allocation was made; empty if its answer was lost.
  std::map<std::string, std::optional<bool>> outcomes_;
};

}  // namespace

std::unique_ptr<Client> make_scheduler(Site& site, std::string partition) {
  return std::make_unique<SchedulerOfCluster>(site, std::move(partition));
}

}  // namespace resourced::sim
