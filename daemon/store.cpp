#include "daemon/store.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "daemon/store_reader.hpp"
#include "daemon/store_writer.hpp"

namespace resourced::daemon {
namespace {

// A step of trimming takes milliseconds, so that commits do not wait for it.
constexpr std::size_t events_per_trim = 1000;

}  // namespace

std::string store_path(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", directory, error.message()));
  return (std::filesystem::path(directory) / "resourced.sqlite").string();
}

Store::Store(const std::string& directory)
    : writer_(std::make_unique<StoreWriter>(store_path(directory))),
      reader_(std::make_unique<StoreReader>(writer_->database())),
      last_sequence_(writer_->last_sequence()),
      last_timestamp_(reader_->last_timestamp()) {}

Store::~Store() { stop(); }

RecordedState Store::load() { return writer_->load(); }

void Store::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  thread_ = std::thread([this] { work(); });
}

void Store::append(Record record) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(record));
  if (queue_.size() == 1) wake_.notify_one();
}

void Store::ask(Question question) {
  const std::lock_guard lock(mutex_);
  questions_.push_back(std::move(question));
  wake_.notify_one();
}

void Store::find_start(const EventFilter& filter, std::size_t most,
                       std::function<void(HistoryStart)> answer) {
  ask([this, filter, most, answer = std::move(answer)] {
    callbacks_.post([start = reader_->start(filter, most), answer] { answer(start); });
  });
}

void Store::read_page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit,
                      std::function<void(HistoryPage)> answer) {
  ask([this, filter, from, to, limit, answer = std::move(answer)] {
    auto page = std::make_shared<HistoryPage>(reader_->page(filter, from, to, limit));
    callbacks_.post([page, answer] { answer(std::move(*page)); });
  });
}

void Store::trim(double before) {
  const std::lock_guard lock(mutex_);
  trim_before_ = before;
  wake_.notify_one();
}

void Store::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Store::Counters Store::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void Store::work() {
  try {
    while (turn()) {
    }
  } catch (const Error& error) {
    callbacks_.post([this, error] { callbacks_.failed(error); });
  }
}

bool Store::turn() {
  std::vector<Record> records;
  Question question;
  std::optional<double> trim_before;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || !questions_.empty() || trim_before_; });
    if (stopping_ && queue_.empty()) return false;
    records.swap(queue_);
    if (!questions_.empty()) {
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    trim_before = trim_before_;
  }
  if (!records.empty()) commit(records);
  if (question) question();
  if (trim_before && writer_->trim(*trim_before, events_per_trim) < events_per_trim) {
    const std::lock_guard lock(mutex_);
    if (trim_before_ == trim_before) trim_before_.reset();
  }
  return true;
}

void Store::commit(const std::vector<Record>& records) {
  writer_->commit(records);
  {
    const std::lock_guard lock(mutex_);
    ++counters_.commits;
    counters_.events += records.size();
  }
  callbacks_.post([this, last = records.back().sequence] { callbacks_.committed(last); });
}

}  // namespace resourced::daemon
