#include "daemon/log/etcd/leader_log.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/etcd/holders_json.hpp"
#include "daemon/log/etcd/packed_text.hpp"
#include "daemon/log/etcd/record_json.hpp"
#include "os/log.hpp"

namespace resourced::daemon::log::etcd {
namespace {

// Maximum size of a batch, which is one transaction of etcd. Etcd takes 1.5 MiB.
constexpr std::size_t most_batch_bytes = std::size_t{128} << 10;
// Maximum size of a snapshot. Etcd has three of them at most, and 2 GiB by default.
constexpr std::size_t most_snapshot_bytes = std::size_t{256} << 20;

std::size_t size_of(const log::Record& record) {
  return sizeof(record) + record.text.size() + (record.resources ? record.resources->size() : 0);
}

}  // namespace

using log::Sequence;

LeaderLog::LeaderLog(std::unique_ptr<Runtime> runtime, Member& member, log::EventLog& store,
                     CopyStore copy_store, LogLimits limits)
    : store_(store),
      limits_(limits),
      committed_(store.last_sequence()),
      stored_(committed_),
      copy_store_(std::move(copy_store)),
      coordinator_(std::move(runtime), member) {}

void LeaderLog::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  Coordinator::Callbacks own;
  own.committed = [this](Sequence last) { on_committed(last); };
  own.wants_snapshot = [this] { make_snapshot(); };
  own.ended = [this](const std::string& why) {
    if (finished_) return std::exchange(finished_, nullptr)();
    callbacks_.deposed(gives_up_.empty() ? why : gives_up_);
  };
  own.changed = [this] { watch(); };
  own.failed = [ended = own.ended](const Error& error) { ended(error.what()); };
  coordinator_.start(std::move(own));
}

void LeaderLog::Load::add(const Load& other) noexcept {
  events += other.events;
  bytes += other.bytes;
}

void LeaderLog::Load::remove(const Load& other) noexcept {
  events -= other.events;
  bytes -= other.bytes;
}

bool LeaderLog::Load::is_beyond(const LogLimits& limits) const noexcept {
  return events > limits.most_events || bytes > limits.most_bytes;
}

// Called after each step of the member.
void LeaderLog::watch() {
  const std::string& refusal = coordinator_.member().refusal();
  const bool was_refused = std::exchange(is_refused_, !refusal.empty());
  if (is_refused_ && !was_refused) os::log_error("etcd refuses requests: {}", refusal);
  if (!is_refused_ && was_refused) os::log_info("etcd carries out requests again");
  // A disk that hangs would keep journals and questions waiting for ever, so another member should lead.
  if (unstored_.empty() || finished_ || !gives_up_.empty()) return;
  const Seconds hangs = coordinator_.now() - stored_at_;
  if (hangs < limits_.longest_hang) return;
  gives_up_ = fmt::format("the store has not written an event for {:.0f} s", hangs.count());
  coordinator_.resign();
}

void LeaderLog::append(log::Record record) {
  std::vector<log::Record> records;
  records.push_back(std::move(record));
  append_all(std::move(records));
}

void LeaderLog::append_all(std::vector<log::Record> records) {
  Step step{std::move(records)};
  // Encodes the records now, while etcd commits others, and not between two of its transactions.
  for (const log::Record& record : step.records) {
    const std::string line = encode_record(record);
    step.bytes += size_of(record) + line.size();
    step.text += line;
  }
  waiting_.add({step.records.size(), step.bytes});
  queue_.push_back(std::move(step));
  commit_soon();
}

// Commits in a later turn of the loop, so that all events of one step, and of all requests that have come, go
// into one commit.
void LeaderLog::commit_soon() {
  if (std::exchange(is_posted_, true)) return;
  coordinator_.runtime().post([this] {
    is_posted_ = false;
    commit();
  });
}

void LeaderLog::commit() {
  if (!under_way_.empty()) return;
  if (!coordinator_.member().leads() || !gives_up_.empty()) return;
  if (queue_.empty()) {
    if (finished_) coordinator_.resign(successor_);
    return;
  }
  ::resourced::cluster::Batch batch;
  batch.first = queue_.front().records.front().sequence;
  batch.text.reserve(std::min(waiting_.bytes, most_batch_bytes));
  while (!queue_.empty() && batch.text.size() < most_batch_bytes) {
    Step step = std::move(queue_.front());
    queue_.pop_front();
    waiting_.remove({step.records.size(), step.bytes});
    under_way_load_.add({step.records.size(), step.bytes - step.text.size()});
    batch.text += step.text;
    batch.last = step.records.back().sequence;
    if (step.holders) batch.holders = std::move(step.holders);
    std::move(step.records.begin(), step.records.end(), std::back_inserter(under_way_));
  }
  batch.text = pack(std::move(batch.text));
  sent_at_ = coordinator_.now();
  coordinator_.commit(std::move(batch));
}

void LeaderLog::on_committed(Sequence last) {
  ++counters_.commits;
  counters_.events += under_way_.size();
  if (unstored_.empty()) stored_at_ = coordinator_.now();
  unstored_load_.add(under_way_load_);
  unstored_.emplace_back(last, std::exchange(under_way_load_, {}));
  store_.append_all(std::exchange(under_way_, {}));
  committed_ = last;
  // The next batch goes to etcd first: etcd works on it while answers leave and requests come back.
  if (!queue_.empty()) {
    commit();
  } else if (finished_) {
    commit_soon();
  }
  if (coordinator_.member().leads()) callbacks_.committed(last);
}

void LeaderLog::on_stored(Sequence last) {
  stored_ = last;
  stored_at_ = coordinator_.now();
  while (!unstored_.empty() && unstored_.front().first <= last) {
    unstored_load_.remove(unstored_.front().second);
    unstored_.pop_front();
  }
  while (!questions_.empty() && questions_.front().first <= stored_) {
    log::Question question = std::move(questions_.front().second);
    questions_.pop_front();
    store_.ask(std::move(question));
  }
}

void LeaderLog::make_snapshot() {
  if (!copy_store_) return coordinator_.decline();
  copy_store_(most_snapshot_bytes, [this](auto made) { on_snapshot(std::move(made)); });
}

void LeaderLog::on_snapshot(std::variant<log::CopiedStore, Error> made) {
  if (const auto* failure = std::get_if<Error>(&made)) {
    // The copy is tried again some seconds later, so each reason is logged once.
    if (std::exchange(snapshot_failure_, failure->what()) != failure->what())
      os::log_warning("cannot make a snapshot for members that are far behind: {}", failure->what());
    return coordinator_.decline();
  }
  snapshot_failure_.clear();
  auto& copy = std::get<log::CopiedStore>(made);
  const Sequence sequence = copy.sequence;
  const std::size_t bytes = copy.bytes;
  coordinator_.offer({sequence, bytes, [copy = std::move(copy)](std::size_t offset, std::size_t size) {
                        return copy.read(offset, size);
                      }});
}

void LeaderLog::finish(std::function<void()> done, std::optional<std::string> successor) {
  if (!coordinator_.member().leads()) return coordinator_.runtime().post(std::move(done));
  successor_ = std::move(successor);
  finished_ = std::move(done);
  commit_soon();
}

std::vector<module::PartitionHolder> LeaderLog::former_holders() const {
  const std::string& text = coordinator_.member().holders();
  if (text.empty()) return {};
  try {
    return decode_holders(text);
  } catch (const Error& error) {
    os::log_warning("cannot read the previous leader's holders: {}", error.what());
    return {};
  }
}

void LeaderLog::keep_holders(const std::vector<module::PartitionHolder>& holders) {
  std::string text = encode_holders(holders);
  if (queue_.empty()) return coordinator_.keep_holders(std::move(text));
  queue_.back().holders = std::move(text);
}

bool LeaderLog::may_serve() const { return coordinator_.member().may_serve(coordinator_.now()); }

std::optional<std::string> LeaderLog::stalled() const {
  const BootTime now = coordinator_.now();
  if (!under_way_.empty() && now - sent_at_ > limits_.longest_commit) {
    const std::string& refusal = coordinator_.member().refusal();
    const std::string& trouble = refusal.empty() ? coordinator_.trouble() : refusal;
    return fmt::format("etcd has not confirmed a change for {:.0f} s: nothing can be changed until it does{}",
                       (now - sent_at_).count(), trouble.empty() ? "" : fmt::format(" ({})", trouble));
  }
  if (waiting_.is_beyond(limits_))
    return fmt::format("{} changes wait for etcd: try again later", waiting_.events);
  if (!unstored_.empty() && now - stored_at_ > limits_.longest_store) {
    return fmt::format(
        "the store has not written an event for {:.0f} s: nothing can be changed until it does",
        (now - stored_at_).count());
  }
  if (unstored_load_.is_beyond(limits_))
    return fmt::format("{} events wait for the store: try again later", unstored_load_.events);
  return std::nullopt;
}

// Asks a question once the store has all committed events, which it gets some milliseconds after etcd.
void LeaderLog::ask(log::Question question) {
  if (auto* past = std::get_if<log::ReadPast>(&question))
    past->answer = while_serving(std::move(past->answer));
  if (auto* usage = std::get_if<log::ReadUsage>(&question))
    usage->answer = while_serving(std::move(usage->answer));
  if (stored_ >= committed_ || std::holds_alternative<log::FindTargets>(question))
    return store_.ask(std::move(question));
  questions_.emplace_back(committed_, std::move(question));
}

// Drops an answer once another member may lead: it could leave after answers of that leader, and tell of an
// older state.
std::function<void(log::Past)> LeaderLog::while_serving(std::function<void(log::Past)> answer) const {
  return [this, answer = std::move(answer)](log::Past past) {
    if (may_serve()) answer(std::move(past));
  };
}

}  // namespace resourced::daemon::log::etcd
