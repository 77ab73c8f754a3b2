#include "cli/commands/live_cluster.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "os/loop.hpp"
#include "proto/event_json.hpp"

namespace resourced::cli::commands {

using nlohmann::json;

namespace {

bool is_of_ledger(const json& event) {
  const auto name = event.find("name");
  return name != event.end() && name->is_string() &&
         proto::is_ledger_name(name->get_ref<const std::string&>());
}

}  // namespace

LiveCluster::LiveCluster(Context& context, Options options, std::function<void()> changed)
    : context_(context), connection_(context.connection()), options_(options), changed_(std::move(changed)) {
  begin();
}

// Starts: requests the number of the last event.
void LiveCluster::begin() {
  is_following_ = is_past_told_ = false;
  events_.clear();
  journal_.emplace(connection_, *this, client::JournalOptions{.since = last_time, .follow_restart = true});
}

void LiveCluster::follow(std::optional<std::uint64_t> last) {
  is_following_ = true;
  client::JournalOptions wanted{.allocations = options_.allocations, .follow_restart = true};
  // Without numbers the whole history is requested: the clocks of this machine and of the daemon may differ,
  // so `since` could leave out an event.
  if (last) wanted.after = *last - std::min<std::uint64_t>(*last, options_.events);
  journal_.emplace(connection_, *this, wanted);
}

void LiveCluster::on_events(const client::JournalBatch& batch) {
  // After a loss, request the state again: the schedulers have to reconnect, and changes that the daemon read
  // at its start are no events.
  if (std::exchange(loss_, std::nullopt)) refresh();
  if (!is_following_) return follow(batch.last());
  for (const json& event : batch.json()) {
    if (options_.events == 0 || !event.is_object() || is_of_ledger(event)) continue;
    events_.push_back(event);
    if (events_.size() > options_.events) events_.pop_front();
  }
  const bool is_first = !is_past_told_ && batch.empty();
  if (is_first && options_.peers && !std::exchange(watches_peers_, true)) watch_peers();
  is_past_told_ = is_past_told_ || batch.empty();
  if (is_past_told_ && (is_first || !batch.empty())) refresh();
}

void LiveCluster::on_error(const Error& why) {
  // The daemon has another log than before: start again with that.
  if (std::string_view(why.what()).starts_with("after: ")) return begin();
  throw Error(why);
}

void LiveCluster::on_lost(const Error& why) {
  loss_ = why;
  lost_at_ = context_.now();
  changed_();
}

void LiveCluster::refresh() {
  is_outdated_ = true;
  if (is_asking_ || is_due_) return;
  const SteadyTime now = os::steady_clock();
  const auto passed = asked_at_ ? std::chrono::duration_cast<client::Milliseconds>(now - *asked_at_) : pause;
  if (passed >= pause) return ask();
  is_due_ = true;
  connection_.after(pause - passed, [this] {
    is_due_ = false;
    ask();
  });
}

void LiveCluster::ask() {
  is_asking_ = true;
  is_outdated_ = false;
  asked_at_ = os::steady_clock();
  if (options_.peers) ask_for_peers();
  ask_for("resource.status", [this](json answer) {
    is_asking_ = false;
    if (!answer.is_null()) status_ = std::move(answer);
    changed_();
    if (is_outdated_) refresh();
  });
}

void LiveCluster::ask_for(const char* topic, std::function<void(json)> use) {
  connection_.send(topic, [use = std::move(use)](const client::Response& response) {
    if (response.ok()) return use(response.payload());
    const int errnum = response.error().errnum();
    // Ignored errors: the inventory is not known yet, the daemon has no such topic or does not lead, or the
    // connection is lost.
    const bool is_known = response.local() || errnum == EAGAIN || errnum == ENOENT || errnum == ENOSYS ||
                          errnum == EPERM || errnum == ECANCELED || errnum == EHOSTUNREACH;
    if (!is_known) throw Error(response.error());
    use(nullptr);
  });
}

void LiveCluster::ask_for_peers() {
  ask_for("resource.peers", [this](json answer) {
    if (answer == peers_ || loss_) return;
    peers_ = std::move(answer);
    if (!status_.is_null()) changed_();
  });
}

void LiveCluster::watch_peers() {
  connection_.after(peers_period, [this] {
    if (!loss_) ask_for_peers();
    watch_peers();
  });
}

}  // namespace resourced::cli::commands
