#include "sim_log.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "daemon/log/store_writer.hpp"
#include "state_difference.hpp"

namespace resourced::sim {

void Export::begin(const daemon::log::StoreBase& base) {
  writer_ = {};
  reader_.reset();
  (void)read(writer_.begin(base, daemon::log::StoreWriter::all_events));
}

std::optional<daemon::log::Record> Export::read(std::string_view lines) {
  std::optional<daemon::log::Record> record;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    if (reader_) {
      record = reader_->read(line);
    } else {
      reader_.emplace(line);
    }
  }
  return record;
}

void Export::add(const daemon::log::Record& record) {
  const auto find = [&](const std::string& name) { return record.documents.at(name); };
  const auto read_back = read(writer_.add(
      {record.sequence, record.timestamp, record.text, false, nullptr, record.audience, record.rest}, find));
  const auto stored = [](const daemon::log::Record& row) {
    return std::tuple(row.sequence, row.timestamp, row.name, row.text, row.hosts.encode(), row.rest,
                      row.audience, row.by);
  };
  if (!read_back || stored(*read_back) != stored(record))
    throw std::logic_error("an export leads to another event than " + record.text);
  constexpr daemon::log::Sequence events_per_snapshot = 8;
  if (record.sequence % events_per_snapshot != 0) return;
  const auto before = std::make_shared<const module::State>(state());
  begin({record.sequence, record.timestamp, before});
  const std::string difference = test::state_difference(*before, state());
  if (!difference.empty()) throw std::logic_error("a snapshot has another " + difference);
}

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
  const daemon::log::Sequence least = disk_.last() + count;
  while (disk_.last() < least) {
    const daemon::log::Sequence end = ends_.front();
    ends_.pop_front();
    while (disk_.last() < end) {
      disk_.exported.add(queue_.front());
      disk_.records.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
}

void SimLog::answer(const daemon::log::FindTargets& question) {
  question.targets->find();
  question.answer();
}

void SimLog::answer(const daemon::log::FindStart& question) {
  daemon::log::HistoryStart start;
  if (const auto& after = question.filter.after) {
    start.first = *after + 1;
    if (*after > disk_.last()) start.failure = Error(EINVAL, "after: there is no such event");
    return question.answer(start);
  }
  start.first = disk_.last() >= question.most ? disk_.last() - question.most + 1 : 1;
  if (start.first > 1) start.truncated = disk_.records[start.first - 2].timestamp;
  question.answer(start);
}

void SimLog::answer(const daemon::log::ReadPage& question) {
  daemon::log::HistoryPage page;
  daemon::log::PageLimit room(question.limit);
  page.next = question.from;
  for (; page.next <= std::min(question.to, disk_.last()); ++page.next) {
    const daemon::log::Record& record = disk_.records[page.next - 1];
    const bool defines = record.name == "resource-define";
    if (!room.admit(record.text.size(), defines)) break;
    page.events.push_back({record.sequence, record.timestamp, record.text, defines, record.resources});
  }
  question.answer(page);
}

// A leader asks for the end of the log while etcd confirms nothing.
void SimLog::answer(const daemon::log::ReadPast& question) {
  daemon::log::Past past;
  if (!disk_.records.empty()) {
    past.sequence = disk_.last();
    past.text = question.render(disk_.state(), past.sequence);
  } else {
    past.failure = Error(ENODATA, "the log has no states");
  }
  question.answer(std::move(past));
}

void SimLog::answer(const daemon::log::ReadUsage& /*question*/) {
  throw std::logic_error("no simulated client asks for a report");
}

void SimLog::answer() {
  const daemon::log::Question question = std::move(questions_.front());
  questions_.pop_front();
  std::visit([this](const auto& known) { answer(known); }, question);
}

}  // namespace resourced::sim
