#include "daemon/log/store_recovery.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/module/event.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/host_ids.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/state_lock.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_schema.hpp"

namespace resourced::daemon::log {
namespace {

namespace fs = std::filesystem;

/// Describes an event in a line for people. A record of the ledger is told by the ids of its allocations.
std::string describe(StoreReader& log, Sequence sequence) {
  EventFilter all;
  all.audiences = all_audiences;
  try {
    const HistoryPage page = log.page(all, sequence, sequence, 1);
    if (page.events.empty()) return fmt::format("event {}", sequence);
    const LoggedEvent& logged = page.events.front();
    if (logged.audience != Audience::ledger) return fmt::format("event {}: {}", sequence, logged.text);
    const module::Event event = event_of(logged, [&](const std::string& name) { return log.document(name); });
    std::vector<std::string> ids;
    if (const auto* alloc = std::get_if<module::AllocEvent>(&event.body)) {
      for (const module::SharedAllocation& allocation : alloc->allocations)
        ids.push_back(text_of(allocation->name));
      return fmt::format("event {}: the allocation of {}", sequence, fmt::join(ids, ", "));
    }
    if (const auto* update = std::get_if<module::AllocUpdateEvent>(&event.body))
      return fmt::format("event {}: the change of allocation {}", sequence, text_of(update->name));
    const auto& free = std::get<module::FreeEvent>(event.body);
    for (const std::string& id : free.ids) ids.push_back(module::text_of({free.partition.value_or(""), id}));
    return fmt::format("event {}: the free of {}{}", sequence, fmt::join(ids, ", "),
                       free.partial ? " on " + free.nodelist.encode() : "");
  } catch (const std::exception&) {
    return fmt::format("event {}, which cannot be read", sequence);
  }
}

/// Refuses an event after which the log cannot end. `is_behind` says that the log once had events that it
/// lacks now.
void check_bounds(Database& database, StoreReader& log, Sequence last, bool is_behind) {
  const Sequence newest = log.last();
  if (last > newest || (last == newest && !is_behind))
    throw Error(EINVAL, fmt::format("it has events up to {}, so none after {} to give up", newest, last));
  Statement rolled_up(database, "SELECT coalesce(max(sequence), 0) FROM rolled_up");
  rolled_up.step();
  const Sequence oldest = std::max(log.dropped(), static_cast<Sequence>(rolled_up.integer(0)));
  rolled_up.reset();
  if (last == 0 || last < oldest)
    throw Error(EINVAL,
                fmt::format("it has no state after event {}: events up to {} were dropped, or are to be",
                            last, oldest));
}

/// Lets the log of a store end with the event `wanted`, or with its last one, and gives it a new number.
/// `before` is the last commit that the lock file names.
Recovered cut(const std::string& path, std::optional<Sequence> wanted,
              const std::optional<StateLock::Head>& before) {
  Database database(path);
  if (is_empty(database)) throw Error(EINVAL, "it has no tables");
  check_schema(database);
  HostIds hosts;
  load_hosts(database, hosts);
  StoreReader log(database, hosts);
  const Sequence newest = log.last();
  const bool is_behind = before && before->store == store_number(database) && before->sequence > newest;
  if (wanted) check_bounds(database, log, *wanted, is_behind);
  Recovered recovered;
  recovered.last = wanted.value_or(newest);
  PastReader past(database, log);
  PastReader::Search search = past.begin_at(recovered.last);
  while (!search.is_done()) past.advance(search);
  for (Sequence sequence = recovered.last + 1; sequence <= newest; ++sequence)
    recovered.lost.push_back(describe(log, sequence));
  // A backup may be older than the number that an earlier recovery has given the store.
  if (!wanted && before && !is_behind && before->store != store_number(database)) {
    recovered.lost.push_back(fmt::format(
        "all that the store as it was, with events up to {}, has and this file lacks", before->sequence));
  }
  if (is_behind)
    recovered.lost.push_back(
        fmt::format("events {} to {}, which this file lacks", newest + 1, before->sequence));
  database.execute("BEGIN IMMEDIATE");
  database.execute(
      fmt::format("DELETE FROM event WHERE sequence > {0}; DELETE FROM snapshot WHERE sequence > {0};"
                  "DELETE FROM snapshot_document WHERE snapshot > {0};"
                  "DELETE FROM event_block WHERE block >= {1}",
                  recovered.last, (recovered.last + 1) / block_size)
          .c_str());
  SnapshotRows(database).write(SnapshotRow(recovered.last, search.states));
  renew_number(database);
  database.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  return recovered;
}

void copy(const std::string& from, const std::string& to) {
  std::error_code error;
  if (fs::exists(from, error)) fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) throw Error(error.value(), fmt::format("{}: {}", from, error.message()));
}

/// Puts the store `from`, with its log cut after `last`, in the place of the one at `path`, and keeps that.
Recovered replace(const std::string& path, const std::string& from, std::optional<Sequence> last) {
  const std::string kept = path + ".damaged";
  const std::string incoming = incoming_path(path);
  // A recovery that was killed between its renames has left its copy, which the next start would remove.
  const auto check_moved = [&](const char* suffix) {
    if (!fs::exists(incoming) || fs::exists(path + suffix) || !fs::exists(kept + suffix)) return;
    throw Error(EEXIST,
                fmt::format("{0}{2}: a recovery that did not end has moved {1}{2} here; rename it back", kept,
                            path, suffix));
  };
  check_moved("");
  if (!fs::exists(from)) throw Error(ENOENT, fmt::format("{}: there is no store", from));
  const StateLock lock(path);
  if (fs::exists(kept)) {
    throw Error(
        EEXIST,
        fmt::format("{0}: is there from an earlier recovery; move it away first, and {0}-wal with it", kept));
  }
  check_moved("-wal");
  if (fs::exists(kept + "-wal"))
    throw Error(EEXIST, fmt::format("{}-wal: is there from an earlier recovery; move it away first", kept));
  Recovered recovered;
  try {
    for (const char* suffix : {"", "-wal"}) {
      fs::remove(incoming + suffix);
      copy(from + suffix, incoming + suffix);
    }
    recovered = cut(incoming, last, lock.head());
  } catch (const Error& error) {
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(incoming + suffix);
    // Operators know the file by its own name, and not by that of the copy.
    std::string text = error.what();
    if (text.starts_with(incoming)) text.erase(0, incoming.size());
    throw Error(error.errnum(), from + (text.starts_with(':') ? "" : ": ") + text);
  }
  // After a kill between the renames, a start finds by the lock file that the store is missing, and names it.
  if (fs::exists(path)) recovered.kept = kept;
  for (const char* suffix : {"-wal", ""})
    if (fs::exists(path + suffix)) fs::rename(path + suffix, kept + suffix);
  fs::remove(path + "-shm");
  fs::rename(incoming, path);
  return recovered;
}

}  // namespace

Recovered recover_store(const std::string& directory, Sequence last) {
  const std::string path = (fs::path(directory) / store_file).string();
  check_store_files(path);
  return replace(path, path, last);
}

Recovered restore_store(const std::string& directory, const std::string& backup) {
  const std::string path = (fs::path(directory) / store_file).string();
  check_store_files(path);
  if (!fs::exists(backup)) {
    throw Error(ENOENT,
                fmt::format("{}: there is no such file, and it is not the number of an event", backup));
  }
  std::error_code other;
  if (fs::equivalent(path, backup, other))
    throw Error(EINVAL, fmt::format("{}: is the store itself, and no backup", backup));
  return replace(store_path(directory), backup, std::nullopt);
}

}  // namespace resourced::daemon::log
