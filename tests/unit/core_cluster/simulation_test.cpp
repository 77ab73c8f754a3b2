// A cluster in simulated time: requests and outcomes are lost, delayed and reordered, members are paused,
// killed and started again, and etcd is unreachable for a while. The events that were answered are compared
// with the log.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/cluster/member.hpp"
#include "simulated_etcd.hpp"
#include "thorough.hpp"

namespace resourced::cluster::test {
namespace {

constexpr Sequence keeps_all = 1000000;

class Cluster {
 public:
  Cluster(std::uint64_t seed, std::size_t members, Sequence keep)
      : random_(seed), keep_(keep), nodes_(members) {
    for (std::size_t node = 0; node < members; ++node) start(node);
  }

  SimulatedEtcd etcd;

  // Runs for a time with faults, then without faults until a member with all events leads.
  void run(Seconds time) {
    calm_ = now_ + time;
    while (now_ < calm_ && faults_.empty()) {
      if (chance(20)) break_something();
      if (chance(10)) write();
      next();
    }
    is_calm_ = true;
    blocked_until_ = {};
    for (Node& node : nodes_) node.paused_until = std::min(node.paused_until, now_);
    const BootTime end = now_ + Seconds(20);
    settled_ = now_ + Seconds(12);
    while (now_ < end && faults_.empty()) {
      if (now_ < end - Seconds(5) && chance(10)) write();
      next();
    }
    judge();
  }

  std::vector<std::string> faults_;
  std::size_t answered() const { return answered_.size(); }
  std::size_t takeovers() const { return takeovers_; }
  std::size_t lost_answers() const { return lost_answers_; }
  std::size_t told_changes() const { return told_changes_; }
  std::size_t refused_watches() const { return refused_watches_; }
  std::size_t noticed() const { return noticed_; }
  std::size_t snapshots() const { return snapshots_; }
  std::size_t restored() const { return restored_; }

 private:
  struct Watching {
    RequestId id = 0;
    Watch range;
    Revision told = 0;
    bool is_lost = false;
  };
  struct Node {
    std::unique_ptr<Member> member;
    /// The events on the disk of the node.
    std::vector<std::string> replica;
    std::optional<std::string> cluster;
    BootTime paused_until{};
    std::optional<BootTime> timer;
    bool has_caught_up = false;
    /// The difference between the node's clock and the true time.
    Seconds offset{};
    int life = 0;
    /// Batches whose commit is not known yet.
    std::map<Sequence, std::vector<std::string>> waiting;
    bool resigns = false;
    std::optional<Watching> watch;
    /// The chunks of a snapshot that were received so far.
    std::string incoming;
    /// The node is killed in the middle of writing a batch.
    bool is_cut = false;
  };
  struct Event {
    BootTime at{};
    std::uint64_t order = 0;
    /// The node that handles the event; none for etcd.
    std::optional<std::size_t> node;
    int life = 0;
    std::function<void()> work;
    friend bool operator<(const Event& a, const Event& b) {
      return a.at != b.at ? a.at < b.at : a.order < b.order;
    }
  };

  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  Seconds any(double most) { return Seconds(most * static_cast<double>(random_() % 10000) / 10000); }
  BootTime local(const Node& node) const { return now_ + node.offset; }

  void at(BootTime time, std::optional<std::size_t> node, std::function<void()> work) {
    events_.insert({time, ++order_, node, node ? nodes_[*node].life : 0, std::move(work)});
  }

  void start(std::size_t index) {
    Node& node = nodes_[index];
    ++node.life;
    node.waiting.clear();
    node.resigns = false;
    node.watch.reset();
    node.timer.reset();
    node.offset = any(1000);
    node.has_caught_up = false;
    Settings settings;
    settings.name = fmt::format("m{}", index);
    settings.uri = "tcp://" + settings.name;
    settings.process = fmt::format("{}.{}", index, node.life);
    settings.keep = keep_;
    settings.keep_without = keeps_all;
    settings.trim_after = 5;
    settings.page = 2;
    settings.least_reach = 3;
    settings.most_reach = 20;
    settings.page_bytes = 100;
    settings.part_bytes = 16;
    settings.snapshots.events = keep_ / 2;
    settings.snapshots.pause = Seconds(0.5);
    settings.snapshots.rests = 0;
    settings.snapshots.chunk_bytes = 2048;
    node.member = std::make_unique<Member>(settings, Replica{node.cluster, node.replica.size()});
    at(now_, index, [this, index] { tick(index); });
  }

  void tick(std::size_t index) {
    Node& node = nodes_[index];
    node.timer.reset();
    carry_out(index, node.member->tick(local(node)));
  }

  // Handles one event, or advances the time if there is none.
  void next() {
    if (events_.empty()) {
      now_ += Seconds(0.01);
    } else {
      Event event = std::move(events_.extract(events_.begin()).value());
      now_ = std::max(now_, event.at);
      if (event.node) {
        Node& node = nodes_[*event.node];
        if (event.life != node.life || !node.member) return;
        if (node.paused_until > now_) {
          event.at = node.paused_until;
          events_.insert(std::move(event));
          return;
        }
      }
      event.work();
    }
    etcd.expire(now_);
    tell_changes();
    check_now();
  }

  // Tells each watch of the last change in its range.
  void tell_changes() {
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      auto& watch = nodes_[index].watch;
      if (!watch || watch->is_lost) continue;
      const Revision last = etcd.last_change(watch->range);
      if (last <= watch->told) continue;
      watch->told = last;
      ++told_changes_;
      give(index, watch->id, now_ + delay(), Changed{last});
    }
  }

  void break_watch(Node& node, std::size_t index) {
    if (!node.watch) return;
    const std::uint64_t kind = random_() % 3;
    if (kind == 0) {
      // The watch is lost without any sign of it.
      node.watch->is_lost = true;
      return;
    }
    if (kind == 1) {
      give(index, node.watch->id, now_ + delay(), Unknown{"the connection was lost"});
    } else {
      // etcd cancels a watch whose revision was compacted.
      ++refused_watches_;
      give(index, node.watch->id, now_ + delay(), Refused{"compacted"});
    }
    node.watch.reset();
  }

  Seconds delay() { return !is_calm_ && chance(8) ? any(4) : any(0.01); }

  void give(std::size_t index, RequestId id, BootTime when, Outcome outcome) {
    at(when, index, [this, index, id, outcome = std::move(outcome)] {
      Node& node = nodes_[index];
      carry_out(index, node.member->answer(id, outcome, local(node)));
    });
  }

  void carry_out(std::size_t index, Effects effects) {
    Node& node = nodes_[index];
    if (effects.joined) node.cluster = effects.joined;
    for (const Batch& batch : effects.entries) {
      if (!node.is_cut) take(node, batch);
    }
    if (std::exchange(node.is_cut, false)) return start(index);
    if (effects.leads) {
      ++takeovers_;
      if (node.member->epoch() <= last_epoch_) fault("an epoch that is not higher than the last");
      last_epoch_ = node.member->epoch();
    }
    if (effects.committed) answer(node, *effects.committed);
    for (auto& [id, request] : effects.requests) send(index, id, std::move(request));
    if (effects.wants_snapshot) make_snapshot(index);
    if (effects.restores) node.incoming.clear();
    for (const std::string& chunk : effects.chunks) node.incoming += chunk;
    if (effects.restored) restore(node);
    if (effects.failed) fault(effects.failed->what());
    if (effects.failed || effects.ended || effects.restored) return start(index);
    const auto deadline = node.member->next_deadline();
    if (!deadline) return;
    // A node has one timer, like the daemon; a timer that was replaced by an earlier one is ignored when it
    // fires. It is set a little later, as the sum of a time and an offset is rounded.
    const BootTime due = std::max(now_, *deadline - node.offset) + Seconds(1e-6);
    if (node.timer && *node.timer <= due) return;
    node.timer = due;
    at(due, index, [this, index] {
      const auto& timer = nodes_[index].timer;
      if (timer && *timer <= now_) tick(index);
    });
  }

  void take(Node& node, const Batch& batch) {
    std::istringstream words(batch.text);
    std::string word;
    Sequence sequence = batch.first;
    if (batch.first > node.replica.size() + 1) fault("a gap in the entries");
    for (; words >> word; ++sequence) {
      if (sequence > node.replica.size()) node.replica.push_back(word);
      if (node.replica[sequence - 1] != word) fault("a replica that has another event");
      // The node is killed before it has written the whole batch.
      if (!is_calm_ && chance(200)) node.is_cut = true;
      if (node.is_cut) return;
    }
    check_delay(node, batch);
    if (sequence != batch.last + 1) fault("a batch that is not whole");
  }

  // Each text of the holders is a higher number than those before.
  void check_holders() {
    const auto found = etcd.keys().find("holders");
    if (found == etcd.keys().end()) return;
    const std::uint64_t before = std::exchange(holders_, std::stoull(found->second.value));
    if (holders_ < before) fault("earlier holders replace later ones");
  }

  void note_commit() {
    const auto head = etcd.keys().find("head");
    if (head == etcd.keys().end()) return;
    commits_.try_emplace(sequence_of(head->second), now_);
  }

  // Checks that a follower learns of a commit by its watch, well before its next regular look. Each request
  // for a part of the text takes time as well, also that for the last one, which may be short.
  void check_delay(Node& node, const Batch& batch) {
    const auto commit = commits_.find(batch.last);
    if (!settled_ || now_ < *settled_ || commit == commits_.end() || commit->second < *settled_) return;
    // A follower that has not caught up has earlier entries to read first.
    if (!std::exchange(node.has_caught_up, node.has_caught_up || batch.last == commits_.rbegin()->first))
      return;
    ++noticed_;
    constexpr std::size_t bytes_of_page = 32;
    const Seconds reading = Seconds(0.03) * static_cast<double>(1 + batch.text.size() / bytes_of_page);
    if (now_ - commit->second > Seconds(0.1) + reading) fault("a follower has noticed a commit late");
  }

  // A snapshot has the present state or a slightly earlier one, as a thread of its own writes a daemon's
  // replica.
  void make_snapshot(std::size_t index) {
    at(now_ + any(0.2), index, [this, index] {
      Node& node = nodes_[index];
      ++snapshots_;
      if (chance(10)) return node.member->decline(local(node));
      const std::size_t size = node.replica.size() - std::min(node.replica.size(), random_() % 3);
      std::string text;
      for (std::size_t i = 0; i < size; ++i) text += node.replica[i] + " ";
      const auto read = [text](std::size_t offset, std::size_t bytes) { return text.substr(offset, bytes); };
      carry_out(index, node.member->offer({size, text.size(), read}, local(node)));
    });
  }

  void restore(Node& node) {
    std::istringstream words(node.incoming);
    std::vector<std::string> replica;
    for (std::string word; words >> word;) replica.push_back(word);
    if (replica.size() <= node.replica.size()) fault("a snapshot with no more than the replica");
    if (!std::equal(node.replica.begin(), node.replica.end(), replica.begin()))
      fault("a snapshot of another log");
    node.replica = std::move(replica);
    ++restored_;
  }

  void answer(Node& node, Sequence last) {
    while (!node.waiting.empty() && node.waiting.begin()->first <= last) {
      const auto& [end, words] = *node.waiting.begin();
      Sequence sequence = end - words.size();
      for (const std::string& word : words) {
        if (++sequence <= last_answered_) fault(fmt::format("{} is answered after a later event", word));
        last_answered_ = sequence;
        answered_[word] = sequence;
        node.replica.push_back(word);
      }
      node.waiting.erase(node.waiting.begin());
    }
  }

  void send(std::size_t index, RequestId id, Request request) {
    // Headers of snapshots are rare, so their requests are delayed more often, and for longer.
    const bool is_rare = SimulatedEtcd::puts(request, "snapshot");
    const bool is_bad = !is_calm_ && chance(is_rare ? 2 : 8);
    const Seconds there = is_bad ? any(is_rare ? 12 : 4) : any(0.01);
    const Seconds back = delay();
    const int life = nodes_[index].life;
    const bool is_watch = std::holds_alternative<Watch>(request);
    if (is_watch) nodes_[index].watch.reset();
    if (!is_watch) give(index, id, now_ + Seconds(1), Unknown{"no answer"});
    if (!is_calm_ && chance(15)) return;
    at(now_ + there, std::nullopt, [this, index, life, id, back, request = std::move(request)] {
      if (now_ < blocked_until_) return;
      const Outcome outcome = etcd.carry_out(request, now_);
      note_commit();
      check_holders();
      if (const auto* watch = std::get_if<Watch>(&request); watch != nullptr && nodes_[index].life == life) {
        if (std::holds_alternative<Changed>(outcome))
          nodes_[index].watch = Watching{id, *watch, watch->from - 1};
        else
          ++refused_watches_;
      }
      if (!is_calm_ && chance(15)) {
        ++lost_answers_;
        return;
      }
      if (nodes_[index].life != life) return;
      give(index, id, now_ + back, outcome);
    });
  }

  void write() {
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      Node& node = nodes_[index];
      if (!node.member || !node.member->leads() || node.paused_until > now_ || node.member->waiting() > 2)
        continue;
      if (node.resigns || !node.member->may_serve(local(node))) continue;
      Batch batch;
      batch.first = (node.waiting.empty() ? node.replica.size() : node.waiting.rbegin()->first) + 1;
      std::vector<std::string> words;
      for (std::uint64_t count = 1 + random_() % 6; count > 0; --count) {
        words.push_back(fmt::format("e{}", ++last_word_));
        batch.text += words.back() + " ";
      }
      batch.last = batch.first + words.size() - 1;
      node.waiting.emplace(batch.last, words);
      if (chance(3)) batch.holders = fmt::format("{}", ++last_holders_);
      carry_out(index, node.member->commit(std::move(batch), local(node)));
      if (node.member->leads() && chance(3))
        carry_out(index, node.member->keep_holders(fmt::format("{}", ++last_holders_), local(node)));
    }
  }

  void break_something() {
    const std::size_t index = random_() % nodes_.size();
    Node& node = nodes_[index];
    switch (random_() % 5) {
      case 0:
        node.paused_until = std::max(node.paused_until, now_ + any(8));
        return;
      case 1: {
        if (!chance(3)) return;
        node.member.reset();
        // The disk lags behind etcd by a few events, and may end within a batch.
        node.replica.resize(node.replica.size() - std::min<std::size_t>(node.replica.size(), random_() % 10));
        // The node is sometimes away for long, or returns with an empty disk. At the end all are there.
        const BootTime back = std::min(now_ + any(chance(4) ? 30 : 5), calm_ + Seconds(1));
        if (chance(8)) {
          node.replica.clear();
          node.cluster.reset();
        }
        ++node.life;
        events_.insert({back, ++order_, std::nullopt, 0, [this, index, life = node.life] {
                          if (nodes_[index].life == life) start(index);
                        }});
        return;
      }
      case 2:
        if (chance(5)) blocked_until_ = now_ + any(6);
        return;
      case 3:
        return break_watch(node, index);
      default: {
        if (!node.member || !node.member->leads() || node.paused_until > now_ || !chance(4)) return;
        node.resigns = true;
        // The successor may be a member that is away, or one that does not exist.
        const std::uint64_t whom = random_() % (2 * nodes_.size());
        std::optional<std::string> successor;
        if (whom > 0) successor = fmt::format("m{}", whom - 1);
        carry_out(index, node.member->resign(local(node), successor));
        return;
      }
    }
  }

  void check_now() {
    std::size_t serving = 0;
    for (const Node& node : nodes_) {
      if (node.member && node.member->may_serve(local(node))) ++serving;
    }
    if (serving > 1) fault("two members serve at once");
    if (keep_ < keeps_all && chance(20)) check_log();
  }

  // Checks that a member without any events gets all of them from etcd: the snapshot, and the entries after
  // it.
  void check_log() {
    Sequence last = 0;
    const auto& keys = etcd.keys();
    if (const auto found = keys.find("snapshot"); found != keys.end()) {
      const SnapshotHeader header = read_header(found->second);
      last = header.sequence;
      for (std::size_t chunk = 0; chunk < header.chunks; ++chunk) {
        if (!keys.contains(chunk_key(header, chunk))) return fault("a chunk of the snapshot is missing");
      }
    }
    for (auto entry = keys.lower_bound(log_key(last + 1)); entry != keys.end(); ++entry) {
      if (!entry->first.starts_with("log/")) break;
      const EntryHeader header = entry_header(entry->second);
      if (header.first > last + 1)
        return fault(fmt::format("events {} to {} are missing", last + 1, header.first - 1));
      last = header.last;
    }
    if (const auto head = keys.find("head"); head != keys.end() && sequence_of(head->second) != last)
      fault("events are missing in the log");
  }

  void judge() {
    const auto longest =
        std::ranges::max_element(nodes_, {}, [](const Node& node) { return node.replica.size(); });
    for (const Node& node : nodes_) {
      if (!std::equal(node.replica.begin(), node.replica.end(), longest->replica.begin()))
        fault("replicas differ");
    }
    if (std::ranges::count_if(nodes_, [](const Node& node) { return node.member && node.member->leads(); }) !=
        1)
      fault("not one leader in the end");
    std::set<std::string> seen;
    for (const std::string& word : longest->replica) {
      if (!seen.insert(word).second) fault(word + " is in the log twice");
    }
    for (const auto& [word, sequence] : answered_) {
      if (sequence > longest->replica.size() || longest->replica[sequence - 1] != word)
        fault(word + " was answered and is not in the log at its place");
    }
    const auto head = etcd.keys().find("head");
    if (head != etcd.keys().end() && head->second.value != fmt::format("{}", longest->replica.size()))
      fault("the replicas do not have the whole log");
    if (holders_ != last_holders_) fault("the last holders are not in etcd");
    if (keep_ < keeps_all) check_log();
    std::set<std::string> folders;
    for (const auto& [key, value] : etcd.keys()) {
      if (key.starts_with("snapshot/")) folders.insert(key.substr(0, key.rfind('/')));
    }
    // Folders of chunks: that of the header, the one before it, and one that is being put.
    if (folders.size() > 3) fault("chunks of earlier snapshots are left");
  }

  void fault(const std::string& text) { faults_.push_back(text); }

  std::mt19937_64 random_;
  Sequence keep_;
  BootTime now_{};
  std::vector<Node> nodes_;
  std::set<Event> events_;
  std::uint64_t order_ = 0;
  BootTime blocked_until_{};
  bool is_calm_ = false;
  std::map<std::string, Sequence> answered_;
  Sequence last_answered_ = 0;
  Revision last_epoch_ = 0;
  std::uint64_t last_word_ = 0;
  /// The holders in etcd, and the last ones that a leader was given.
  std::uint64_t holders_ = 0;
  std::uint64_t last_holders_ = 0;
  std::size_t takeovers_ = 0;
  std::size_t lost_answers_ = 0;
  std::size_t told_changes_ = 0;
  std::size_t refused_watches_ = 0;
  /// The time of the commit of each head.
  std::map<Sequence, BootTime> commits_;
  /// When faults end.
  BootTime calm_{};
  /// The time from which the faults have no effect any more.
  std::optional<BootTime> settled_;
  std::size_t noticed_ = 0;
  std::size_t snapshots_ = 0;
  std::size_t restored_ = 0;
};

constexpr Seconds time_of_faults{60};

// Whether the simulation detects this fault of etcd at one of the first seeds.
template <class Break>
bool is_found(std::uint64_t seeds, Break break_etcd, Sequence keep = keeps_all) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Cluster cluster(seed, 3, keep);
    break_etcd(cluster.etcd);
    cluster.run(time_of_faults);
    if (!cluster.faults_.empty()) return true;
  }
  return false;
}

}  // namespace

TEST_SUITE_BEGIN("cluster simulation");

TEST_CASE("whatever is lost, delayed, paused or killed, each answered event is in the log once") {
  const auto seeds = resourced::test::thorough<std::uint64_t>(400, 30);
  std::size_t answered = 0;
  std::size_t takeovers = 0;
  std::size_t lost = 0;
  std::size_t told = 0;
  std::size_t refused = 0;
  std::size_t noticed = 0;
  std::size_t snapshots = 0;
  std::size_t restored = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Cluster cluster(seed, 2 + seed % 3 / 2, seed % 2 == 0 ? 20 : keeps_all);
    cluster.run(time_of_faults);
    const std::string fault = cluster.faults_.empty() ? "" : cluster.faults_.front();
    REQUIRE(fault == "");
    answered += cluster.answered();
    takeovers += cluster.takeovers();
    lost += cluster.lost_answers();
    told += cluster.told_changes();
    refused += cluster.refused_watches();
    noticed += cluster.noticed();
    snapshots += cluster.snapshots();
    restored += cluster.restored();
  }
  MESSAGE(answered, " events, ", takeovers, " takeovers, ", lost, " lost outcomes, ", told, " changes told, ",
          refused, " watches refused, ", noticed, " batches noticed in time, ", snapshots, " snapshots, ",
          restored, " of them taken");
  CHECK(answered > seeds * 50);
  CHECK(takeovers > seeds * 2);
  CHECK(lost > seeds * 5);
  CHECK(told > seeds * 20);
  CHECK(refused > 0);
  CHECK(noticed > seeds * 5);
  CHECK(snapshots > seeds);
  CHECK(restored > seeds / 6);
}

TEST_CASE("the simulation finds a commit that does not compare the epoch") {
  CHECK(is_found(50, [](SimulatedEtcd& etcd) { etcd.ignores_created = true; }));
}

TEST_CASE("the simulation finds a commit that does not compare the head") {
  CHECK(is_found(50, [](SimulatedEtcd& etcd) { etcd.ignores_modified = true; }));
}

TEST_CASE("the simulation finds a header of a snapshot that does not compare the epoch") {
  constexpr Sequence keep = 20;
  CHECK(is_found(
      200, [](SimulatedEtcd& etcd) { etcd.unguarded = "snapshot"; }, keep));
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
