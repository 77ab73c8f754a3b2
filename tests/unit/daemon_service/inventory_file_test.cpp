// resource.reload of a file: read on another thread than the loop, one result at a time. A file that never
// ends does not keep other clients from loading.
#include "daemon/service/inventory_file.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "no_threads.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

/// Files whose reading ends when the test decides, each with an Error of its path, and the loop that receives
/// the results.
class Files final : public service::Deferral {
 public:
  void later(Seconds /*pause*/, std::function<void()> work) override { post("", std::move(work)); }
  void post(std::string_view /*name*/, std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    changed_.notify_all();
  }
  service::InventoryFile::Read read() {
    return [this](const std::string& path) -> service::InventoryFile::Result {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_.contains(path) || ended_.contains("all"); });
      return Error(EINVAL, path);
    };
  }
  void end(const std::string& path) {
    const std::lock_guard lock(mutex_);
    ended_.insert(path);
    changed_.notify_all();
  }
  /// Runs the next posted function; waits for it if necessary.
  void step() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !posted_.empty(); }));
    const auto work = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    work();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> ended_;
  std::deque<std::function<void()>> posted_;
};

struct Reading {
  ~Reading() {
    files.end("all");
    for (; unread > 0; --unread) files.step();
  }
  void read(const std::string& path) {
    file.read(path, [this](const service::InventoryFile::Result& result) {
      told.emplace_back(std::get<Error>(result).what());
    });
    ++unread;
  }
  void step() {
    files.step();
    --unread;
  }

  Files files;
  service::InventoryFile file{files, files.read()};
  std::vector<std::string> told;
  int unread = 0;
};

TEST_CASE("the result of a file that was dropped is not told, whether it comes before or after another's") {
  Reading reading;
  reading.read("old");
  CHECK(reading.file.busy());
  reading.file.drop();
  CHECK_FALSE(reading.file.busy());
  reading.read("new");
  reading.files.end("old");
  reading.step();
  CHECK(reading.told.empty());
  CHECK(reading.file.busy());
  reading.files.end("new");
  reading.step();
  CHECK(reading.told == std::vector<std::string>{"new"});
  CHECK_FALSE(reading.file.busy());
  reading.read("alone");
  reading.file.drop();
  reading.files.end("alone");
  reading.step();
  CHECK(reading.told.size() == 1);
}

TEST_CASE("files that never end are bounded, and one that does makes room") {
  Reading reading;
  for (const char* path : {"0", "1", "2", "3"}) {
    reading.read(path);
    reading.file.drop();
  }
  const auto refusal = [&] {
    try {
      reading.file.read("more", nullptr);
    } catch (const Error& error) {
      return error.errnum();
    }
    return 0;
  };
  CHECK(refusal() == EBUSY);
  CHECK_FALSE(reading.file.busy());
  reading.files.end("2");
  reading.step();
  reading.read("more");
  reading.files.end("more");
  reading.step();
  CHECK(reading.told == std::vector<std::string>{"more"});
}

TEST_CASE("what the reading throws is the result") {
  Files files;
  const auto result_of = [&](const service::InventoryFile::Read& read) {
    service::InventoryFile file(files);
    std::optional<Error> result;
    file.read(
        "dir", [&](const service::InventoryFile::Result& ended) { result = std::get<Error>(ended); }, read);
    files.step();
    REQUIRE(result.has_value());
    return *result;
  };
  const Error unknown = result_of(
      [](const std::string&) -> service::InventoryFile::Result { throw std::length_error("too many"); });
  CHECK(unknown.errnum() == EINVAL);
  CHECK(std::string(unknown.what()) == "dir: too many");
  const Error known =
      result_of([](const std::string&) -> service::InventoryFile::Result { throw Error(EIO, "no disk"); });
  CHECK(known.errnum() == EIO);
  CHECK(std::string(known.what()) == "no disk");
}

TEST_CASE("a client that goes makes way for another load, and hears nothing of its own") {
  Stand stand;
  const proto::ClientId first = stand.connect();
  const proto::ClientId second = stand.connect();
  const nlohmann::json missing{{"path", stand.dir.file("missing")}};
  stand.request(first, "resource.reload", missing);
  stand.request(second, "resource.reload", missing);
  CHECK(stand.receive(second).errnum() == EBUSY);
  stand.disconnect(first);
  CHECK(stand.call(second, "resource.reload", missing).errnum() == ENOENT);
  CHECK(stand.silent(first));
  CHECK(stand.silent(second));
}

TEST_CASE("without a thread to be had a load is refused, and the next one finds one") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  const nlohmann::json missing{{"path", stand.dir.file("missing")}};
  {
    const NoThreads none;
    stand.request(client, "resource.reload", missing);
    const proto::Message refused = stand.receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text().find("missing: cannot start a thread to read it: ") != std::string::npos);
  }
  CHECK(stand.call(client, "resource.reload", missing).errnum() == ENOENT);
}

}  // namespace
}  // namespace resourced::daemon::test
