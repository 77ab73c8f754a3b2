// An operator of a simulated cluster. At the end the log is compared with the outcome of each change: carried
// out, refused, or unknown, as the connection was lost.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "checks.hpp"
#include "client.hpp"

namespace resourced::sim {
namespace {

using nlohmann::json;

constexpr std::size_t most_under_way = 3;

class Operator final : public Client {
 public:
  Operator(Site& site, unsigned rank) : Client(site), rank_(rank) {}

  void receive(Node& /*node*/, const proto::Message& message) override {
    const auto asked = waiting_.extract(message.matchtag);
    demand(!asked.empty(), "a response that no operator waits for: " + std::string(message.text()));
    Change& change = changes_[asked.mapped()];
    const auto errnum = message.errnum();
    if (errnum != 0) {
      change.outcome = Outcome::refused;
      demand(errnum == EHOSTUNREACH || errnum == EAGAIN || errnum == EINVAL || errnum == EEXIST,
             fmt::format("{} ends with {}: {}", change.name(), errnum, message.text()));
      if (errnum == EHOSTUNREACH) leave();
      return;
    }
    change.outcome = Outcome::done;
    if (change.drains()) return site_.answer(site_.etcd.find(change.reason), change.name());
    demand(last_undrain() > change.floor, "answered, and not in etcd: " + change.name());
  }

  // The events of the operator's rank are its changes, in their order: a change that is done has an event, a
  // refused one has none, and one without an answer may have one. `reached` has the numbers of changes that
  // may be over after the events so far.
  void judge() const override {
    demand(waiting_.empty(), "a change has no answer");
    std::vector<bool> reached(changes_.size() + 1);
    reached[0] = true;
    skip(reached);
    for (const Etcd::Entry& entry : site_.etcd.log()) {
      if (!is_own(entry)) continue;
      const json& context = entry.event.at("context");
      std::vector<bool> next(reached.size());
      for (std::size_t at = 0; at < changes_.size(); ++at) {
        if (reached[at] && changes_[at].outcome != Outcome::refused &&
            changes_[at].reason == (entry.record.name == "drain" ? context.value("reason", "") : ""))
          next[at + 1] = true;
      }
      reached = std::move(next);
      skip(reached);
      demand(std::ranges::find(reached, true) != reached.end(),
             fmt::format("event {} is none of an operator's changes in their order: {}",
                         entry.record.sequence, entry.record.text));
    }
    demand(reached.back(), fmt::format("a change of rank {} that was answered is not in the log", rank_));
  }

 private:
  enum class Outcome : std::uint8_t { unknown, done, refused };
  struct Change {
    /// The reason of a drain; empty for an undrain.
    std::string reason;
    std::uint64_t floor = 0;
    Outcome outcome = Outcome::unknown;
    [[nodiscard]] bool drains() const { return !reason.empty(); }
    [[nodiscard]] std::string name() const { return drains() ? "the drain " + reason : "an undrain"; }
  };

  void go_on(bool rests) override {
    if (rests || waiting_.size() >= most_under_way) return;
    Change change;
    change.floor = site_.answered;
    json payload{{"targets", std::to_string(rank_)}};
    if (world().chance(0.6)) {
      change.reason = fmt::format("d{}-{}", rank_, changes_.size());
      payload["reason"] = change.reason;
      payload["mode"] = world().chance(0.7) ? "force-overwrite" : "overwrite";
      constexpr double begin = 1e6;
      if (world().chance(0.1)) payload["until"] = begin + to_number(world().now()) + world().any(10).count();
    }
    const char* const topic = change.drains() ? "resource.drain" : "resource.undrain";
    waiting_[request(topic, payload)] = changes_.size();
    changes_.push_back(std::move(change));
  }
  void lose() override { waiting_.clear(); }

  [[nodiscard]] bool is_own(const Etcd::Entry& entry) const {
    if (entry.record.name != "drain" && entry.record.name != "undrain") return false;
    const json& context = entry.event.at("context");
    return context.contains("by") && context.at("idset") == std::to_string(rank_);
  }
  [[nodiscard]] std::uint64_t last_undrain() const {
    for (std::uint64_t at = site_.etcd.last(); at > 0; --at) {
      const Etcd::Entry& entry = site_.etcd.log()[at - 1];
      if (is_own(entry) && entry.record.name == "undrain") return at;
    }
    return 0;
  }
  // Skips changes that are not done, as they may be over without an event.
  void skip(std::vector<bool>& reached) const {
    for (std::size_t at = 0; at < changes_.size(); ++at) {
      if (reached[at] && changes_[at].outcome != Outcome::done) reached[at + 1] = true;
    }
  }

  unsigned rank_;
  std::vector<Change> changes_;
  /// The number of the change that waits for a response, by matchtag.
  std::map<std::uint32_t, std::size_t> waiting_;
};

}  // namespace

std::unique_ptr<Client> make_operator(Site& site, unsigned rank) {
  return std::make_unique<Operator>(site, rank);
}

}  // namespace resourced::sim
