#include "daemon/store.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "daemon/store_writer.hpp"

namespace resourced::daemon {
namespace {

std::string database_path(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", directory, error.message()));
  return (std::filesystem::path(directory) / "resourced.sqlite").string();
}

}  // namespace

Store::Store(const std::string& directory)
    : writer_(std::make_unique<StoreWriter>(database_path(directory))),
      last_sequence_(writer_->last_sequence()) {}

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
  std::vector<Record> batch;
  for (;;) {
    batch.clear();
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    if (!commit(batch)) return;
  }
}

bool Store::commit(std::vector<Record>& batch) {
  try {
    writer_->commit(batch);
  } catch (const Error& error) {
    callbacks_.failed(error);
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    ++counters_.commits;
    counters_.events += batch.size();
  }
  callbacks_.committed(batch.back().sequence);
  return true;
}

}  // namespace resourced::daemon
