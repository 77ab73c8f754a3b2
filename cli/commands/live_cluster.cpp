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
using proto::topics::EventNumber;
using proto::topics::JournalRequest;

namespace {

/// A time after the last event of any log: the year 9999.
constexpr WallTime after_all_events = wall_time(253402300799);

bool is_of_ledger(const json& event) {
  const auto name = event.find("name");
  return name != event.end() && name->is_string() &&
         proto::is_ledger_name(name->get_ref<const std::string&>());
}

}  // namespace

LiveCluster::LiveCluster(Context& context, Options options, std::function<void()> changed)
    : context_(context),
      connection_(context.connection()),
      options_(options),
      changed_(std::move(changed)),
      journal_(connection_, true,
               {.events = [this](const json& events, auto last) { take(events, last); },
                .ended = [this](const client::Response& response) { on_ended(response); },
                .changed = [this](const std::optional<Error>& loss) { on_changed(loss); }}) {
  begin();
}

// Starts: requests the number of the last event.
void LiveCluster::begin() {
  is_following_ = is_past_told_ = false;
  events_.clear();
  JournalRequest request;
  request.since = after_all_events;
  journal_.ask(request);
}

void LiveCluster::follow(std::optional<EventNumber> last) {
  is_following_ = true;
  JournalRequest request;
  request.allocations = options_.allocations;
  // Without numbers the whole history is requested: the clocks of this machine and of the daemon may differ,
  // so `since` could leave out an event.
  if (last) request.after = *last - std::min<EventNumber>(*last, options_.events);
  journal_.ask(request);
}

void LiveCluster::take(const json& events, std::optional<EventNumber> last) {
  if (!is_following_) return follow(last);
  for (const json& event : events) {
    if (options_.events == 0 || !event.is_object() || is_of_ledger(event)) continue;
    events_.push_back(event);
    if (events_.size() > options_.events) events_.pop_front();
  }
  const bool is_first = !is_past_told_ && events.empty();
  if (is_first && options_.peers && !std::exchange(watches_peers_, true)) watch_peers();
  is_past_told_ = is_past_told_ || events.empty();
  if (is_past_told_ && (is_first || !events.empty())) refresh();
}

void LiveCluster::on_ended(const client::Response& response) {
  // The daemon has another log than before: start again with that.
  const Error& error = response.error();
  if (!response.local() && std::string_view(error.what()).starts_with("after: ")) return begin();
  throw Error(error);
}

void LiveCluster::on_changed(const std::optional<Error>& loss) {
  loss_ = loss;
  if (loss) {
    lost_at_ = context_.now();
    return changed_();
  }
  // Request the state again: the schedulers have to reconnect, and changes that the daemon read at its start
  // are no events.
  refresh();
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
