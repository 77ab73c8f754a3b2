#include "sim_log.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "daemon/log/past_reader.hpp"
#include "os/sha256.hpp"
#include "proto/documents.hpp"
#include "proto/event_json.hpp"
#include "proto/state_json.hpp"
#include "state_difference.hpp"

namespace resourced::sim {

namespace {

module::Event event_of(const daemon::log::Record& record) {
  const auto find = [&](const std::string& name) { return record.documents.at(name); };
  return daemon::log::event_of(
      {record.sequence, record.timestamp, record.text, false, nullptr, record.audience, record.rest}, find);
}

/// The state as a snapshot on disk has it.
module::State reread(const module::State& state) {
  proto::Documents documents(os::sha256);
  const std::string text = proto::encode_state(state, documents);
  module::State read =
      proto::parse_state(text, [&](const std::string& name) { return documents.texts().at(name); });
  const std::string difference = test::state_difference(state, read);
  if (!difference.empty()) throw std::logic_error("a snapshot has another " + difference + ": " + text);
  return read;
}

}  // namespace

void SimLog::append(daemon::log::Record record) {
  std::vector<daemon::log::Record> records;
  records.push_back(std::move(record));
  append_all(std::move(records));
}

void SimLog::append_all(std::vector<daemon::log::Record> records) {
  ends_.push_back(records.back().sequence);
  for (daemon::log::Record& record : records) {
    if (record.sequence != disk_.last() + queue_.size() + 1) throw std::logic_error("a gap in the log");
    if (record.name == "resource-define") last_definition_ = record.sequence;
    queue_.push_back(std::move(record));
  }
}

void SimLog::sync(std::size_t count) {
  constexpr daemon::log::Sequence events_per_snapshot = 8;
  const daemon::log::Sequence least = disk_.last() + count;
  while (disk_.last() < least) {
    const daemon::log::Sequence end = ends_.front();
    ends_.pop_front();
    while (disk_.last() < end) {
      (void)module::apply(disk_.state, event_of(queue_.front()));
      if (queue_.front().sequence % events_per_snapshot == 0) disk_.state = reread(disk_.state);
      disk_.records.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
}

void SimLog::find_targets(std::shared_ptr<daemon::log::NamedTargets> targets, std::function<void()> answer) {
  questions_.emplace_back([targets = std::move(targets), answer = std::move(answer)] {
    targets->find();
    answer();
  });
}

void SimLog::find_start(const daemon::log::EventFilter& filter, std::size_t most,
                        std::function<void(daemon::log::HistoryStart)> answer) {
  questions_.emplace_back([this, after = filter.after, most, answer = std::move(answer)] {
    daemon::log::HistoryStart start;
    if (after) {
      start.first = *after + 1;
      if (*after > disk_.last()) start.failure = Error(EINVAL, "after: there is no such event");
      return answer(start);
    }
    start.first = disk_.last() >= most ? disk_.last() - most + 1 : 1;
    if (start.first > 1) start.truncated = disk_.records[start.first - 2].timestamp;
    answer(start);
  });
}

void SimLog::read_page(const daemon::log::EventFilter& /*filter*/, daemon::log::Sequence from,
                       daemon::log::Sequence to, std::size_t limit,
                       std::function<void(daemon::log::HistoryPage)> answer) {
  questions_.emplace_back([this, from, to, limit, answer = std::move(answer)] {
    daemon::log::HistoryPage page;
    daemon::log::PageLimit room(limit);
    page.next = from;
    for (; page.next <= std::min(to, disk_.last()); ++page.next) {
      const daemon::log::Record& record = disk_.records[page.next - 1];
      const bool defines = record.name == "resource-define";
      if (!room.admit(record.text.size(), defines)) break;
      page.events.push_back({record.sequence, record.timestamp, record.text, defines, record.resources});
    }
    answer(page);
  });
}

// A leader asks for the end of the log while etcd confirms nothing.
void SimLog::read_past(PastQuestion /*question*/, Render render, std::function<void(Past)> answer) {
  questions_.emplace_back([this, render = std::move(render), answer = std::move(answer)] {
    Past past;
    if (!disk_.records.empty()) {
      past.sequence = disk_.last();
      past.text = render(disk_.state, past.sequence);
    } else {
      past.failure = Error(ENODATA, "the log has no states");
    }
    answer(std::move(past));
  });
}

void SimLog::read_usage(UsageQuestion /*question*/, std::function<void(Past)> /*answer*/) {
  throw std::logic_error("no simulated client asks for a report");
}

void SimLog::answer() {
  const auto question = std::move(questions_.front());
  questions_.pop_front();
  question();
}

}  // namespace resourced::sim
