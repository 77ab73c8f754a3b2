#include "daemon/instance/kvs_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/base64.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::instance {

using log::Sequence;

namespace {

using nlohmann::json;
constexpr int append_flag = 32;
constexpr int sync_flag = 4;

bool defines(const log::Record& record) { return record.name == "resource-define"; }

}  // namespace

json kvs_lookup(const std::string& key) { return {{"key", key}, {"namespace", "primary"}, {"flags", 0}}; }

std::string kvs_value(const std::string& key, const json& answer) {
  try {
    const auto& data = answer.at("val").at("data").get_ref<const std::string&>();
    auto bytes = text::decode_base64(data);
    if (!bytes) throw Error(EPROTO, fmt::format("kvs.lookup: {}: not whole base64", key));
    return *std::move(bytes);
  } catch (const json::exception& error) {
    throw Error(EPROTO, fmt::format("kvs.lookup: {}: {}", key, error.what()));
  }
}

json kvs_commit(const std::vector<KvsChange>& changes, bool sync) {
  json ops = json::array();
  for (const KvsChange& change : changes) {
    ops.push_back({{"key", change.key},
                   {"flags", change.appends ? append_flag : 0},
                   {"dirent", {{"ver", 1}, {"type", "val"}, {"data", text::encode_base64(change.value)}}}});
  }
  return {{"namespace", "primary"}, {"flags", sync ? sync_flag : 0}, {"ops", std::move(ops)}};
}

KvsLog::KvsLog(std::vector<KeptState::Line> history, std::size_t most, Predecessor predecessor)
    : history_(std::make_move_iterator(history.begin()), std::make_move_iterator(history.end())),
      most_(most),
      predecessor_(predecessor),
      last_(history_.size()) {
  for (const KeptState::Line& line : history_) last_timestamp_ = std::max(last_timestamp_, line.timestamp);
  trim();
}

void KvsLog::set_most(std::size_t most) {
  most_ = most;
  trim();
}

void KvsLog::trim() {
  // Count the truncate entry for the dropped events as one event.
  while (history_.size() + times_.size() + (dropped_ ? 1 : 0) > most_ &&
         !(history_.empty() && times_.empty())) {
    if (history_.empty()) {
      dropped_ = times_.front();
      times_.pop_front();
    } else {
      dropped_ = history_.front().timestamp;
      if (predecessor_.has_readers)
        dropped_history_.push_back({history_.front().timestamp, std::move(history_.front().ranks)});
      history_.pop_front();
    }
  }
}

void KvsLog::append(log::Record record) {
  last_ = record.sequence;
  last_timestamp_ = std::max(last_timestamp_, record.timestamp);
  times_.push_back(record.timestamp);
  trim();
  add_changes(record);
  if (record.audience != log::Audience::nobody) events_.emplace_back(record.name, record.text);
  ++counters_.events;
  commit_soon();
}

// Adds the changes of a record. Events of liveness are not written: a module that is loaded later asks the
// brokers.
void KvsLog::add_changes(const log::Record& record) {
  if (record.audience == log::Audience::nobody) return;
  const bool is_update = record.name == "resource-update";
  const bool changes_properties = defines(record) || record.name == "property-update";
  // Write R as well: Flux's own module takes the properties from it.
  if (changes_properties || is_update) changes_.push_back({resources_key, callbacks_.resources()});
  if (changes_properties) changes_.push_back({properties_key, callbacks_.properties()});
  if (defines(record) && std::exchange(predecessor_.has_defined, false)) return;
  if (defines(record) || is_update || record.name == "drain" || record.name == "undrain") {
    append_line(eventlog_key, proto::without_actor(record.text, record.by));
  }
  if (record.name == "undrain" || (record.name == "drain" && record.by)) append_line(actors_key, record.text);
}

// Adds a line. All lines of a commit for one key are one change, also if those of two keys alternate.
void KvsLog::append_line(const char* key, std::string line) {
  line += '\n';
  constexpr std::size_t alternating = 2;
  const std::size_t last = std::min(alternating, changes_.size());
  for (auto change = changes_.rbegin(); change != changes_.rbegin() + static_cast<std::ptrdiff_t>(last);
       ++change) {
    if (change->key != key) continue;
    if (!change->appends) break;
    change->value += line;
    return;
  }
  changes_.push_back({key, std::move(line), true});
}

void KvsLog::change(std::vector<KvsChange> changes) {
  std::ranges::move(changes, std::back_inserter(changes_));
  commit_soon();
}

void KvsLog::finish(std::optional<KvsChange> change, std::function<void()> done) {
  if (change) changes_.push_back(*std::move(change));
  finished_ = std::move(done);
  commit_soon();
}

// Commits later, so that all events of one step, and of all received requests, are in one commit.
void KvsLog::commit_soon() {
  if (is_busy_ || std::exchange(is_posted_, true)) return;
  callbacks_.post([this] {
    is_posted_ = false;
    if (!is_busy_) commit();
  });
}

void KvsLog::commit() {
  if (has_failed_) return;
  const Sequence last = last_;
  std::vector<std::pair<std::string, std::string>> events = std::exchange(events_, {});
  if (changes_.empty()) {
    on_committed(last, events);
    if (finished_) finished_();
    return;
  }
  is_busy_ = true;
  const bool is_last = static_cast<bool>(finished_);
  const json request = kvs_commit(changes_, is_last);
  changes_.clear();
  callbacks_.commit(request, [this, last, is_last, events = std::move(events)](const Error* error) {
    is_busy_ = false;
    if (error != nullptr) {
      has_failed_ = true;
      return callbacks_.failed(*error);
    }
    ++counters_.commits;
    on_committed(last, events);
    if (is_last) return finished_();
    if (last_ > last || !changes_.empty() || finished_) commit_soon();
  });
}

void KvsLog::on_committed(Sequence last, const std::vector<std::pair<std::string, std::string>>& events) {
  for (const auto& [name, text] : events) callbacks_.recorded(name, text);
  callbacks_.committed(last);
}

log::HistoryStart KvsLog::start_of(const log::EventFilter& filter, std::size_t most) const {
  log::HistoryStart start{first(), dropped_, std::nullopt};
  if (filter.targets && !filter.targets->strangers.empty()) {
    filter.targets->strangers.for_each([&](std::string_view host) {
      if (!start.unknown_host) start.unknown_host = std::string(host);
    });
    return start;
  }
  const Sequence oldest = start.first;
  const auto timestamp = [&](Sequence sequence) {
    const std::size_t at = sequence - oldest;
    return at < history_.size() ? history_[at].timestamp : times_[at - history_.size()];
  };
  // The known events of a reader are from an earlier process, so they are the beginning of the history.
  std::size_t known = filter.known;
  const auto is_known = [&](const auto& event) {
    if (filter.targets && !event.ranks.intersects(filter.targets->ranks)) return true;
    if (filter.since && event.timestamp < *filter.since) return true;
    if (known == 0 || event.timestamp != filter.since) return false;
    --known;
    return true;
  };
  if (filter.resumes && !std::ranges::all_of(dropped_history_, is_known)) {
    start.failure =
        Error(EOVERFLOW, "too late: the next event is not kept any more (journal-max); ask again");
    return start;
  }
  if (filter.since) {
    while (start.first <= last_ && timestamp(start.first) < *filter.since) ++start.first;
    while (known > 0 && start.first - oldest < history_.size() && is_known(history_[start.first - oldest]))
      ++start.first;
    // Events before `since` were not requested.
    if (start.first > oldest || (dropped_ && *dropped_ < *filter.since)) start.truncated.reset();
  } else if (!filter.resumes && !filter.targets && last_ + 1 - oldest + (dropped_ ? 1 : 0) > most) {
    start.first = std::max(oldest, last_ + 2 - most);
    if (start.first > oldest) start.truncated = timestamp(start.first - 1);
  }
  // No truncation is reported to a reader that has all events before its position: it was informed before.
  if (filter.resumes) start.truncated.reset();
  return start;
}

log::HistoryPage KvsLog::page_of(const log::EventFilter& filter, Sequence from, Sequence to,
                                 std::size_t limit) const {
  log::HistoryPage page;
  page.next = from;
  page.has_gap = from < first();
  if (page.has_gap) return page;
  log::PageLimit room(limit);
  for (; page.next <= to; ++page.next) {
    const std::size_t at = page.next - first();
    if (at >= history_.size()) break;
    const KeptState::Line& line = history_[at];
    if (filter.since && line.timestamp < *filter.since) continue;
    if (filter.targets && !line.ranks.intersects(filter.targets->ranks)) continue;
    if (!room.admit(line.text.size(), false)) break;
    page.events.push_back({page.next, line.timestamp, line.text});
  }
  return page;
}

void KvsLog::ask(log::Question question) {
  callbacks_.post([this, question = std::move(question)] {
    if (const auto* named = std::get_if<log::FindTargets>(&question)) {
      named->targets->find();
      named->answer();
    } else if (const auto* start = std::get_if<log::FindStart>(&question)) {
      start->answer(start_of(start->filter, start->most));
    } else if (const auto* page = std::get_if<log::ReadPage>(&question)) {
      page->answer(page_of(page->filter, page->from, page->to, page->limit));
    } else {
      const auto* past = std::get_if<log::ReadPast>(&question);
      const auto& answer = past != nullptr ? past->answer : std::get<log::ReadUsage>(question).answer;
      answer({{}, Error(ENOSYS, "a Flux instance keeps no states of the past")});
    }
  });
}

}  // namespace resourced::daemon::instance
