#include "client.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "checks.hpp"

namespace resourced::sim {

using nlohmann::json;

void Site::answer(std::uint64_t sequence, const std::string& change) {
  demand(sequence > 0, "answered, and not in etcd: " + change);
  demand(sequence > answered,
         fmt::format("event {} is answered after event {}: {}", sequence, answered, change));
  answered = sequence;
  ++answers;
}

void Client::act(bool rests) {
  if (!link_ && !connect()) return;
  if (!world().is_calm() && world().chance(0.01)) return leave();
  go_on(rests);
}

bool Client::connect() {
  const std::size_t node = world().below(site_.nodes.size());
  if (!site_.nodes[node]->is_up()) return false;
  link_ = Link{node, ClientId{++site_.last_client}};
  is_stalled_ = false;
  site_.connections[link_->id] = this;
  return true;
}

void Client::leave() {
  if (!link_) return;
  site_.nodes[link_->node]->disconnect(link_->id);
  site_.connections.erase(link_->id);
  link_.reset();
  lose();
}

void Client::on_closed(const Node& node) {
  if (!link_ || link_->node != node.index()) return;
  site_.connections.erase(link_->id);
  link_.reset();
  lose();
}

std::uint32_t Client::request(const std::string& topic, const json& payload, std::uint8_t flags,
                              Handled handled) {
  const std::uint32_t matchtag = ++last_matchtag_;
  site_.nodes[link_->node]->deliver(
      link_->id,
      proto::make_request(topic, matchtag, payload.is_null() ? nullptr : proto::make_payload(payload.dump()),
                          flags),
      std::move(handled));
  return matchtag;
}

void Client::set_stalled(bool stalls) {
  if (!link_) return;
  is_stalled_ = stalls;
  site_.nodes[link_->node]->stall(link_->id, stalls);
}

bool Client::was_stalled() const { return link_ && site_.nodes[link_->node]->was_stalled(link_->id); }

namespace {

class Reader final : public Client {
 public:
  using Client::Client;

  void receive(Node& node, const proto::Message& message) override {
    const auto found = asked_.extract(message.matchtag);
    demand(!found.empty(), "a response that no reader waits for");
    const Question& asked = found.mapped();
    const auto errnum = message.errnum();
    demand(errnum == 0 || errnum == EAGAIN || errnum == EBUSY || errnum == ECANCELED,
           fmt::format("a question is answered with {}: {}", errnum, message.text()));
    if (errnum != 0) return;
    const json body = json::parse(message.text());
    if (!asked.is_status) {
      demand(body.at("head") <= site_.etcd.last(), "a head of the log that etcd does not have");
      return;
    }
    ++site_.pictures;
    if (node.leads()) {
      demand(!body.contains("sequence"), "a leader names the event of its state");
      const std::uint64_t told = asked.committed;
      if (told == 0) return;
      demand(told >= asked.floor,
             fmt::format("the status after event {} is asked for after event {} was answered", told,
                         asked.floor));
      if (!site_.etcd.is_within_start(told)) check_status(body, site_.etcd.state_after(told));
      return;
    }
    const std::uint64_t sequence = body.at("sequence");
    demand(sequence <= node.disk().last(), "a standby tells of an event that is not on its disk");
    demand(sequence >= seen_, "the status of a standby goes back");
    seen_ = sequence;
    if (!site_.etcd.is_within_start(sequence)) check_status(body, site_.etcd.state_after(sequence));
  }
  void judge() const override { demand(asked_.empty(), "a question has no answer"); }

 private:
  struct Question {
    bool is_status = true;
    std::uint64_t floor = 0;
    /// The last committed event when the question was handled (Node::Handled). A client that makes no changes
    /// sees this state.
    std::uint64_t committed = 0;
  };

  void go_on(bool rests) override {
    if (rests || asked_.size() >= 2) return;
    if (world().chance(0.1)) return leave();
    const bool is_status = world().chance(0.9);
    // The matchtag is known only once the request is made, which is before the request is handled.
    const auto matchtag = std::make_shared<std::uint32_t>(0);
    *matchtag = request(is_status ? "resource.status" : "resource.cluster", nullptr, 0,
                        [this, matchtag](const Node::Handled& handled) {
                          if (const auto found = asked_.find(*matchtag); found != asked_.end())
                            found->second.committed = handled.committed;
                        });
    asked_[*matchtag] = {is_status, site_.answered, 0};
  }
  void lose() override {
    asked_.clear();
    seen_ = 0;
  }

  std::map<std::uint32_t, Question> asked_;
  std::uint64_t seen_ = 0;
};

class Follower final : public Client {
 public:
  using Client::Client;

  void receive(Node& /*node*/, const proto::Message& message) override {
    const auto errnum = message.errnum();
    if (errnum != 0) {
      demand(errnum == ENODATA || errnum == EHOSTUNREACH || errnum == EOVERFLOW,
             fmt::format("a journal ended with {}: {}", errnum, message.text()));
      return leave();
    }
    const json body = json::parse(message.text());
    for (const json& event : body.at("events")) {
      demand(last_ < site_.etcd.last(),
             [&] { return "a journal has an event that etcd does not have: " + event.dump(); });
      const Etcd::Entry& entry = site_.etcd.log()[last_++];
      demand(event == entry.event,
             [&] { return fmt::format("a journal has {} in the place of event {}", event.dump(), last_); });
      if (body.at("events").size() == 1 && entry.record.resources)
        demand(body.at("R") == json::parse(*entry.record.resources), "a journal has another R");
    }
    if (!body.at("events").empty())
      demand(body.at("last") == last_, [&] {
        return fmt::format("a journal says that event {} is {}", last_, body.at("last").dump());
      });
  }
  void judge() const override {
    demand(last_ == site_.etcd.last(),
           fmt::format("a journal ends with event {} of {}", last_, site_.etcd.last()));
  }

 private:
  void go_on(bool rests) override {
    if (!std::exchange(follows_, true)) {
      request("resource.journal", {{"allocations", true}, {"own", true}, {"after", last_}},
              proto::flag::streaming);
      return;
    }
    if (is_stalled() ? rests || world().chance(0.3) : !rests && world().chance(0.02))
      set_stalled(!is_stalled());
  }
  void lose() override { follows_ = false; }

  bool follows_ = false;
  std::uint64_t last_ = 0;
};

class Administrator final : public Client {
 public:
  using Client::Client;

  void receive(Node& node, const proto::Message& message) override {
    waits_ = false;
    const auto errnum = message.errnum();
    demand(errnum == 0 || errnum == EHOSTUNREACH || errnum == EAGAIN || errnum == EBUSY || errnum == ENOENT ||
               errnum == EINVAL || errnum == ECANCELED,
           fmt::format("a hand-over ends with {}: {}", errnum, message.text()));
    demand(errnum != 0 || node.leads(), "a hand-over of a daemon that does not lead");
    if (errnum != 0) leave();
  }
  void judge() const override { demand(!waits_, "a hand-over has no answer"); }

 private:
  void go_on(bool rests) override {
    if (rests || waits_ || world().is_calm() || !world().chance(0.1)) return;
    json payload;
    if (world().chance(0.5)) payload = {{"name", site_.nodes[world().below(site_.nodes.size())]->name()}};
    waits_ = true;
    request("resource.hand-over", payload);
  }
  void lose() override { waits_ = false; }

  bool waits_ = false;
};

class Evictor final : public Client {
 public:
  using Client::Client;

  void receive(Node& node, const proto::Message& message) override {
    waits_ = false;
    const auto errnum = message.errnum();
    demand(errnum == 0 || errnum == EHOSTUNREACH || errnum == EAGAIN || errnum == ENOENT || errnum == ESTALE,
           fmt::format("{} ends with {}: {}", message.topic, errnum, message.text()));
    if (errnum == EHOSTUNREACH) return leave();
    if (errnum != 0 || message.topic != "resource.peers") return;
    demand(node.leads(), "the peers of a daemon that does not lead");
    const json holders = json::parse(message.text()).at("holders");
    if (holders.empty()) return;
    const json& holder = holders[world().below(holders.size())];
    chosen_ = {{"since", holder.at("since")}};
    if (holder.contains("partition")) chosen_["partition"] = holder["partition"];
  }
  void judge() const override { demand(!waits_, "an eviction has no answer"); }

 private:
  void go_on(bool rests) override {
    if (rests || waits_ || !world().chance(0.1)) return;
    waits_ = true;
    const json chosen = std::exchange(chosen_, nullptr);
    request(chosen.is_null() ? "resource.peers" : "resource.evict", chosen);
  }
  void lose() override {
    waits_ = false;
    chosen_ = nullptr;
  }

  bool waits_ = false;
  /// The scheduler to evict next; null for none.
  json chosen_;
};

}  // namespace

std::unique_ptr<Client> make_reader(Site& site) { return std::make_unique<Reader>(site); }
std::unique_ptr<Client> make_follower(Site& site) { return std::make_unique<Follower>(site); }
std::unique_ptr<Client> make_administrator(Site& site) { return std::make_unique<Administrator>(site); }
std::unique_ptr<Client> make_evictor(Site& site) { return std::make_unique<Evictor>(site); }

}  // namespace resourced::sim
