#include "daemon/store/store.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "daemon/store/sqlite.hpp"
#include "daemon/store/store_reader.hpp"
#include "daemon/store/store_writer.hpp"

namespace resourced::daemon::store {
namespace {

// Bounds a step of trimming to some milliseconds, as commits wait for it.
constexpr std::size_t events_per_trim = 1000;

}  // namespace

std::string store_path(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", directory, error.message()));
  return (std::filesystem::path(directory) / store_file).string();
}

Store::Store(const std::string& directory)
    : writer_(std::make_unique<StoreWriter>(store_path(directory))),
      reading_connection_(std::make_unique<Database>(store_path(directory), Database::Access::read)),
      reader_(std::make_unique<StoreReader>(*reading_connection_, writer_->hosts())),
      last_sequence_(writer_->last_sequence()) {
  StoreReader::LastTimestamp last = reader_->last_timestamp();
  last_timestamp_ = last.timestamp;
  damage_ = std::move(last.damage);
}

Store::~Store() { stop(); }

module::RecordedState Store::load() { return writer_->load(); }

void Store::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  thread_ = std::thread([this] { work(); });
  reading_thread_ = std::thread([this] { read(); });
}

void Store::append(Record record) {
  const std::lock_guard lock(mutex_);
  RESOURCED_INVARIANT(queue_.empty() || record.sequence == queue_.back().sequence + 1);
  queue_.push_back(std::move(record));
  if (queue_.size() == 1) wake_.notify_one();
}

void Store::ask(Question question) {
  const std::lock_guard lock(questions_mutex_);
  questions_.push_back(std::move(question));
  asked_.notify_one();
}

void Store::find_targets(std::shared_ptr<NamedTargets> targets, std::function<void()> answer) {
  ask([this, targets = std::move(targets), answer = std::move(answer)] {
    targets->find();
    callbacks_.post(answer);
  });
}

void Store::find_start(const EventFilter& filter, std::size_t most,
                       std::function<void(HistoryStart)> answer) {
  const std::lock_guard lock(questions_mutex_);
  questions_.push_back([this, filter, most, horizon = horizon_, answer = std::move(answer)] {
    HistoryStart start;
    try {
      start = reader_->start(filter, most, horizon);
    } catch (const Error& error) {
      start.failure = error;
    }
    callbacks_.post([start = std::move(start), answer] { answer(start); });
  });
  asked_.notify_one();
}

void Store::read_page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit,
                      std::function<void(HistoryPage)> answer) {
  ask([this, filter, from, to, limit, answer = std::move(answer)] {
    auto page = std::make_shared<HistoryPage>();
    try {
      *page = reader_->page(filter, from, to, limit);
    } catch (const Error& error) {
      page->failure = error;
    }
    callbacks_.post([page, answer] { answer(std::move(*page)); });
  });
}

void Store::trim(WallTime before) {
  WallTime bound = before;
  {
    const std::lock_guard lock(questions_mutex_);
    bound = std::min(before, std::exchange(horizon_, before));
  }
  const std::lock_guard lock(mutex_);
  trim_before_ = bound;
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
  {
    const std::lock_guard lock(questions_mutex_);
    reading_stops_ = true;
  }
  asked_.notify_one();
  reading_thread_.join();
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
  std::optional<WallTime> trim_before;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || trim_before_; });
    if (stopping_ && queue_.empty()) return false;
    records.swap(queue_);
    trim_before = trim_before_;
  }
  if (!records.empty()) commit(records);
  if (trim_before) trim_some(*trim_before);
  writer_->checkpoint([this](const std::function<void()>& work) { without_reader(work); });
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

void Store::trim_some(WallTime before) {
  bool is_done = true;
  try {
    is_done = writer_->trim(before, events_per_trim) < events_per_trim;
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    callbacks_.post([this, error] { callbacks_.not_trimmed(error); });
  }
  const std::lock_guard lock(mutex_);
  if (is_done && trim_before_ == before) trim_before_.reset();
}

void Store::without_reader(const std::function<void()>& work) {
  const auto pause = [this](bool pauses) {
    const std::lock_guard lock(questions_mutex_);
    reading_pauses_ = pauses;
  };
  pause(true);
  {
    const std::lock_guard lock(reading_);
    work();
  }
  pause(false);
  asked_.notify_one();
}

void Store::read() {
  while (true) {
    Question question;
    std::unique_lock reading(reading_, std::defer_lock);
    {
      std::unique_lock lock(questions_mutex_);
      asked_.wait(lock, [this] { return reading_stops_ || (!questions_.empty() && !reading_pauses_); });
      if (reading_stops_) return;
      question = std::move(questions_.front());
      questions_.pop_front();
      // Locked before questions_mutex_ is released: the writing thread asks for a pause under it, so it
      // cannot come between.
      reading.lock();
    }
    question();
  }
}

}  // namespace resourced::daemon::store
