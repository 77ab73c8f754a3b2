#include "daemon/log/store_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/store_schema.hpp"
#include "os/file.hpp"
#include "os/sha256.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {
namespace {

/// Removes the file before and after it is used, also when the copy fails.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& name) : path(name) { remove(); }
  ~TemporaryFile() { remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  const std::string& path;
};

/// Returns the names of hosts by their numbers in the source.
text::Hostlist hosts_of(Database& source, const text::IdSet& ids) {
  text::Hostlist hosts;
  Statement name(source, "SELECT name, sum FROM known_host WHERE id = ?");
  ids.for_each([&](text::IdSet::Id id) {
    if (!name.bind(1, std::int64_t{id}).step() || host_sum(id, name.text(0)) != name.integer(1))
      throw damaged_store(source.path(), fmt::format("host {} of known_host", id));
    hosts.append(name.text(0));
    name.reset();
  });
  return hosts;
}

struct LastEvent {
  Record record;
  /// The number of records of the ledger up to the event.
  Sequence ledger = 0;
  /// The time of the event before, which counts as dropped like all earlier ones.
  WallTime before{};
};

LastEvent read_event(Database& source, Sequence last) {
  Statement event(source, fmt::format("SELECT {} FROM event WHERE sequence = ?", event_columns).c_str());
  if (!event.bind(1, static_cast<std::int64_t>(last)).step())
    throw Error(EBADMSG, fmt::format("event {} is missing", last));
  const EventText text(event);
  const EventRow row = text.row(event);
  if (!text.is_whole(event)) throw Error(EBADMSG, fmt::format("event {} is damaged", last));
  LastEvent read;
  read.record.sequence = last;
  read.record.timestamp = read.before = row.timestamp;
  read.record.name = text.name;
  read.record.text = text.text;
  read.record.rest = text.rest;
  read.record.audience = audience_in_store(text.name);
  read.record.hosts = hosts_of(source, text::IdSet::parse(text.hosts));
  read.ledger = row.ledger;
  event.reset();
  if (text.resources) {
    Statement document(source, "SELECT text FROM document WHERE name = ?");
    if (!document.bind(1, std::string_view(*text.resources)).step() ||
        os::sha256(document.text(0)) != *text.resources)
      throw Error(EBADMSG, fmt::format("event {} is damaged (its resource set)", last));
    read.record.resources = std::make_shared<const std::string>(document.text(0));
    document.reset();
  }
  Statement time(source,
                 "SELECT timestamp FROM event WHERE sequence = ?1 UNION ALL "
                 "SELECT timestamp FROM trimmed WHERE sequence = ?1");
  // The row is not checked and may be damaged, so its time is bounded by that of the last event.
  if (time.bind(1, static_cast<std::int64_t>(last) - 1).step())
    read.before = std::min(read.before, time.time(0));
  return read;
}

}  // namespace

std::string CopiedStore::read(std::size_t offset, std::size_t size) const {
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(file->get(), text.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) os::fail("a copy of the store", errno);
    if (count == 0) throw Error(EIO, "a copy of the store has become shorter");
    done += static_cast<std::size_t>(count);
  }
  return text;
}

CopiedStore copy_store(Database& source, Sequence last, const module::State& state, const std::string& path,
                       std::size_t most_bytes) {
  if (last == 0) throw Error(ENODATA, "the store has no events");
  const LastEvent event = read_event(source, last);
  const TemporaryFile file(path);
  {
    Database target(path);
    // The copy needs no protection against a crash, as an unfinished one is thrown away.
    target.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
    prepare_schema(target);
    target.execute("BEGIN");
    HostIds hosts;
    EventRows(target, hosts, last - 1, event.ledger - Sequence{event.record.audience == Audience::ledger})
        .write(event.record);
    SnapshotRows(target).write(SnapshotRow(last, state));
    if (last > 1) {
      Statement(target, "INSERT INTO trimmed(id, sequence, timestamp, sum) VALUES (1, ?, ?, ?)")
          .bind(1, static_cast<std::int64_t>(last - 1))
          .bind(2, event.before)
          .bind(3, trimmed_sum(last - 1, event.before))
          .run();
    }
    target.execute("COMMIT");
  }
  CopiedStore copy;
  copy.sequence = last;
  copy.file = std::make_shared<os::Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (copy.file->get() < 0 || ::fstat(copy.file->get(), &status) != 0) os::fail(path, errno);
  copy.bytes = static_cast<std::size_t>(status.st_size);
  if (copy.bytes > most_bytes)
    throw Error(EFBIG, fmt::format("a copy of the store is larger than {} bytes", most_bytes));
  return copy;
}

}  // namespace resourced::daemon::log
