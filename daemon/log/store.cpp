#include "daemon/log/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/invariant.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"

namespace resourced::daemon::log {
namespace {

// Maximum number of events in a step of trimming: it takes some milliseconds, and commits wait for it.
constexpr std::size_t events_per_trim = 1000;

/// Lets only the daemon's user look into a directory of a store. A directory of another owner, and one that
/// many users share (the sticky bit, as /tmp has it), stays as it is.
void keep_directory_private(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return;
  if ((status.st_mode & S_ISVTX) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  if (::chmod(directory.c_str(), S_IRWXU) != 0)
    throw Error(errno, fmt::format("{}: chmod: {}", directory, std::strerror(errno)));
}

}  // namespace

std::string store_path(const std::string& directory) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(directory, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", directory, error.message()));
  std::string path = (std::filesystem::path(directory) / store_file).string();
  // A directory that existed before without a store may have other uses, so its rights stay as they are.
  if (is_new || std::filesystem::exists(path, error)) keep_directory_private(directory);
  return path;
}

Store::Store(const std::string& directory)
    : writer_(std::make_unique<StoreWriter>(store_path(directory))),
      reading_connection_(std::make_unique<Database>(store_path(directory), Database::Access::read)),
      reader_(std::make_unique<StoreReader>(*reading_connection_, writer_->hosts())),
      past_(std::make_unique<PastReader>(*reading_connection_, *reader_)),
      usage_(std::make_unique<UsageReader>(*reading_connection_)),
      last_sequence_(writer_->last_sequence()) {
  remove_leftovers(writer_->database().path());
  StoreReader::LastTimestamp last = reader_->last_timestamp();
  last_timestamp_ = last.timestamp;
  damage_ = std::move(last.damage);
}

Store::~Store() { stop(); }

module::State Store::load() { return past_->last_states(); }

std::optional<WallTime> Store::watched() const { return writer_->lock().watched(); }

void Store::write_watched(WallTime now) const noexcept { writer_->lock().write_watched(now); }

std::optional<LoggedEvent> Store::last_event() {
  if (last_sequence_ == 0 || damage_) return std::nullopt;
  EventFilter all;
  all.audiences = {.allocations = true, .own = true};
  try {
    const HistoryPage page = reader_->page(all, last_sequence_, last_sequence_, 1);
    if (page.has_gap) return std::nullopt;
    return page.events.empty() ? LoggedEvent{last_sequence_, last_timestamp_, {}} : page.events.front();
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    return std::nullopt;
  }
}

void Store::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  thread_ = std::thread([this] { run(&Store::work); });
  reading_thread_ = std::thread([this] { run(&Store::read); });
}

void Store::append(Record record) {
  std::vector<Record> records;
  records.push_back(std::move(record));
  append_all(std::move(records));
}

// The writing thread takes the whole queue for one commit.
void Store::append_all(std::vector<Record> records) {
  const std::lock_guard lock(mutex_);
  const bool was_empty = queue_.empty();
  for (Record& record : records) {
    if (record.snapshot) wants_snapshot_ = false;
    RESOURCED_INVARIANT(queue_.empty() || record.sequence == queue_.back().sequence + 1);
    queue_.push_back(std::move(record));
  }
  if (was_empty) wake_.notify_one();
}

void Store::ask(Question question) {
  std::visit([this](auto& known) { take(std::move(known)); }, question);
}

void Store::read_later(std::function<void()> work) {
  const std::lock_guard lock(questions_mutex_);
  questions_.push_back(std::move(work));
  asked_.notify_one();
}

void Store::take(FindTargets&& question) {
  read_later([this, question = std::move(question)] {
    question.targets->find();
    callbacks_.post(question.answer);
  });
}

void Store::take(FindStart&& question) {
  const std::lock_guard lock(questions_mutex_);
  questions_.push_back([this, question = std::move(question), horizon = horizon_] {
    HistoryStart start;
    try {
      start = reader_->start(question.filter, question.most, horizon);
    } catch (const Error& error) {
      start.failure = error;
    }
    callbacks_.post([start = std::move(start), answer = question.answer] { answer(start); });
  });
  asked_.notify_one();
}

void Store::take(ReadPage&& question) {
  read_later([this, question = std::move(question)] {
    auto page = std::make_shared<HistoryPage>();
    try {
      *page = reader_->page(question.filter, question.from, question.to, question.limit);
    } catch (const Error& error) {
      page->failure = error;
    }
    callbacks_.post([page, answer = question.answer] { answer(std::move(*page)); });
  });
}

void Store::trim(WallTime before) {
  WallTime bound = before;
  {
    const std::lock_guard lock(questions_mutex_);
    bound = std::min(before, std::exchange(horizon_, before));
  }
  prepare_trim(bound);
}

void Store::stop(const module::State* present, Sequence applied) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_->end_soon();
  thread_.join();
  {
    const std::lock_guard lock(questions_mutex_);
    reading_stops_ = true;
  }
  asked_.notify_one();
  reading_thread_.join();
  if (present == nullptr || applied == 0 || applied != writer_->last()) return;
  try {
    if (past_->snapshot_until(applied) != applied)
      writer_->write_past(SnapshotRow(applied, *present), nullptr);
  } catch (const Error&) {
    // Without the snapshot, the next start reads the events instead.
  }
}

Store::Counters Store::counters() const {
  const std::uint64_t log_bytes = writer_->log_bytes();
  const std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.log_bytes = log_bytes;
  return counters;
}

// Runs a thread of the store. Any exception that ends it is a failure of the store, which does not work
// without it.
void Store::run(void (Store::*thread)()) {
  const auto fail = [this](const Error& error) {
    callbacks_.post([this, error] { callbacks_.failed(error); });
  };
  try {
    (this->*thread)();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(Error(EIO, error.what()));
  }
}

void Store::work() {
  extend_snapshots();
  while (turn()) {
  }
}

bool Store::turn() {
  constexpr std::size_t most_kept_records = 1024;
  std::vector<PastRows> snapshots;
  std::optional<Trim> trim;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || trim_ || !snapshots_.empty(); });
    if (stopping_ && queue_.empty()) return false;
    writing_.swap(queue_);
    snapshots.swap(snapshots_);
    trim = trim_;
  }
  if (!writing_.empty()) commit(writing_);
  writing_.clear();
  if (writing_.capacity() > most_kept_records) writing_.shrink_to_fit();
  // The snapshot and the roll-up of a trim are written before its events are dropped.
  if (!write_snapshots(snapshots)) {
    {
      const std::lock_guard lock(mutex_);
      trim_.reset();
    }
    if (trim) end_trim();
    trim.reset();
  }
  if (trim) trim_some(*trim);
  extend_snapshots();
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
  callbacks_.post([this, last = records.back().sequence, at = records.back().timestamp] {
    last_sequence_ = last;
    last_timestamp_ = at;
    callbacks_.committed(last);
  });
}

void Store::trim_some(const Trim& trim) {
  bool goes_on = trim.is_part;
  try {
    if (writer_->trim(trim.before, events_per_trim, trim.last) >= events_per_trim) return;
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    callbacks_.post([this, error] { callbacks_.not_trimmed(error); });
    goes_on = false;
  }
  {
    const std::lock_guard lock(mutex_);
    trim_.reset();
  }
  goes_on ? look_for_base(trim.before) : end_trim();
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
    std::function<void()> question;
    PastTask task;
    std::unique_lock reading(reading_, std::defer_lock);
    {
      std::unique_lock lock(questions_mutex_);
      asked_.wait(lock, [this] {
        return reading_stops_ || (!(questions_.empty() && past_tasks_.empty()) && !reading_pauses_);
      });
      if (reading_stops_) return;
      // Questions and tasks of the past take turns, so that neither waits for more than a step of the other.
      is_past_next_ = !past_tasks_.empty() && (questions_.empty() || is_past_next_);
      if (is_past_next_) {
        task = std::move(past_tasks_.front());
        past_tasks_.pop_front();
      } else {
        question = std::move(questions_.front());
        questions_.pop_front();
      }
      is_past_next_ = !is_past_next_;
      // Locked before questions_mutex_ is released: the writing thread asks for a pause under that mutex, so
      // it cannot come between.
      reading.lock();
    }
    if (question) {
      question();
    } else if (!task.step()) {
      const bool goes_on = !task.yields;
      ask_past(std::move(task), goes_on);
    }
  }
}

}  // namespace resourced::daemon::log
