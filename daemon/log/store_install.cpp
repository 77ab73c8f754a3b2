#include "daemon/log/store_install.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/state_lock.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_schema.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log {
namespace {

namespace fs = std::filesystem;

constexpr mode_t mode = 0600;

// Checks the store, and gives it a number of its own: the lock file may name a later event of another copy of
// it.
void check_incoming(const std::string& path, Sequence last) {
  {
    Database database(path);
    database.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
    if (is_empty(database)) throw damaged_store(path, "it has no tables");
    check_schema(database);
    HostIds hosts;
    load_hosts(database, hosts);
    StoreReader reader(database, hosts);
    const Sequence found = reader.last();
    if (found != last) throw damaged_store(path, fmt::format("it ends with event {}, not {}", found, last));
    PastReader past(database, reader);
    PastReader::Search search = past.begin_at(last);
    while (!search.is_done()) past.advance(search);
    renew_number(database);
  }
  os::sync(path);
}

// Ends the write-ahead log of the store that is replaced, as SQLite would take it for one of the new file.
// After a daemon was killed it has commits, which are moved into the file first.
void end_log(const std::string& path) {
  if (fs::exists(path)) {
    Database database(path);
    database.execute("PRAGMA busy_timeout=2000; PRAGMA wal_checkpoint(TRUNCATE);");
  }
  std::error_code error;
  const std::uintmax_t left = fs::file_size(path + "-wal", error);
  if (!error && left > 0)
    throw Error(EBUSY, path + "-wal: in use by another program; end it, and start again");
  fs::remove(path + "-wal", error);
  fs::remove(path + "-shm", error);
}

}  // namespace

std::string copy_path(const std::string& store_path) { return store_path + ".copy"; }
std::string incoming_path(const std::string& store_path) { return store_path + ".new"; }

void remove_leftovers(const std::string& store_path) {
  std::error_code ignored;
  fs::remove(copy_path(store_path), ignored);
  fs::remove(incoming_path(store_path), ignored);
}

IncomingStore::IncomingStore(const std::string& directory)
    : path_(incoming_path(store_path(directory))),
      file_(std::make_shared<os::Descriptor>(
          os::open_file(path_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode))) {}

void IncomingStore::append(std::string_view bytes) { os::write_all(*file_, bytes, path_); }

void install_store(const std::string& directory, Sequence last) {
  const std::string path = store_path(directory);
  const std::string incoming = incoming_path(path);
  const StateLock lock(path);
  check_incoming(incoming, last);
  end_log(path);
  if (::rename(incoming.c_str(), path.c_str()) != 0) os::fail(path, errno);
  os::sync(directory);
}

}  // namespace resourced::daemon::log
