#include "daemon/log/store_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/store_schema.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log {
namespace {

// Bounds a step to some milliseconds, as readers of the log wait for it.
constexpr std::size_t rows_per_step = 1024;

std::unique_ptr<Database> make_database(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  auto database = std::make_unique<Database>(path);
  // A copy that is not finished is thrown away.
  database->execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
  prepare_schema(*database);
  return database;
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

StoreCopy::Table::Table(Database& database, const std::string& name, int count)
    : select(database, fmt::format("SELECT * FROM source.{}", name).c_str()),
      insert(database,
             fmt::format("INSERT INTO main.{} VALUES (?{})", name,
                         fmt::join(std::vector<std::string_view>(static_cast<std::size_t>(count), ""), ", ?"))
                 .c_str()),
      columns(count) {}

StoreCopy::StoreCopy(const std::string& source, std::string path, std::size_t most_bytes)
    : file_(std::move(path)),
      most_bytes_(most_bytes),
      target_(make_database(file_.path)),
      sum_(std::make_unique<PresentSum>(*target_)) {
  sum_->watch();
  Statement(*target_, "ATTACH DATABASE ? AS source").bind(1, std::string_view(source)).run();
  target_->execute("BEGIN");
  Statement present(*target_, "SELECT sequence FROM source.present");
  const Sequence last = present.step() ? static_cast<Sequence>(present.integer(0)) : 0;
  present.reset();
  if (last == 0) throw Error(ENODATA, "the store has no events");
  read_event(last);
  for (const PresentSum::Table& table : PresentSum::tables(*target_)) {
    // These two are of the log.
    if (table.name == "known_host" || table.name == "trimmed") continue;
    tables_.push_back(std::make_unique<Table>(*target_, table.name, static_cast<int>(table.columns.size())));
  }
}

StoreCopy::File::~File() {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

void StoreCopy::read_event(Sequence last) {
  Statement event(*target_,
                  "SELECT timestamp, name, event.text, hosts, resources, sum, ledger, resource_set.text "
                  "FROM source.event LEFT JOIN source.resource_set ON resource_set.id = resources "
                  "WHERE sequence = ?");
  if (!event.bind(1, static_cast<std::int64_t>(last)).step())
    throw Error(EBADMSG, fmt::format("event {} is missing", last));
  event_.name = event.text(1);
  event_.text = event.text(2);
  event_.hosts = event.text(3);
  event_.row = {last,
                event.time(0),
                event_.name,
                event_.text,
                event_.hosts,
                std::nullopt,
                static_cast<Sequence>(event.integer(6))};
  if (!event.is_null(4)) event_.row.resources = event.integer(4);
  event_.resources = event.optional_text(7);
  const bool is_whole = event_.row.sum() == event.integer(5) &&
                        event_.row.resources.has_value() == event_.resources.has_value();
  event.reset();
  if (!is_whole) throw Error(EBADMSG, fmt::format("event {} is damaged", last));
  text::IdSet::parse(event_.hosts).for_each([this](text::IdSet::Id id) { event_.ids.push_back(id); });
}

bool StoreCopy::advance() {
  check_size();
  if (!tables_.empty()) {
    copy_rows();
    return false;
  }
  if (hosts_copied_ < event_.ids.size()) {
    copy_hosts();
    return false;
  }
  write_event();
  write_trimmed();
  sum_->store(event_.row.sequence);
  target_->execute("COMMIT");
  return true;
}

void StoreCopy::copy_rows() {
  Table& table = *tables_.back();
  for (std::size_t row = 0; row < rows_per_step; ++row) {
    if (!table.select.step()) return tables_.pop_back();
    for (int column = 0; column < table.columns; ++column)
      table.insert.bind_column(column + 1, table.select, column);
    table.insert.run();
  }
}

// Their numbers are those of the new store, which has no others.
void StoreCopy::copy_hosts() {
  Statement name(*target_, "SELECT name FROM source.known_host WHERE id = ?");
  Statement insert(*target_, "INSERT INTO main.known_host(id, name) VALUES (?, ?)");
  const std::size_t end = std::min(event_.ids.size(), hosts_copied_ + rows_per_step);
  for (; hosts_copied_ < end; ++hosts_copied_) {
    if (!name.bind(1, std::int64_t{event_.ids[hosts_copied_]}).step())
      throw Error(EBADMSG, fmt::format("a host of event {} is missing", event_.row.sequence));
    insert.bind(1, static_cast<std::int64_t>(hosts_copied_)).bind_column(2, name, 0).run();
    name.reset();
  }
}

void StoreCopy::write_event() {
  EventRow& row = event_.row;
  event_.hosts.clear();
  if (!event_.ids.empty())
    event_.hosts = text::IdSet::range(0, static_cast<text::IdSet::Id>(event_.ids.size() - 1)).encode();
  row.hosts = event_.hosts;
  const auto sequence = static_cast<std::int64_t>(row.sequence);
  Statement insert(*target_,
                   "INSERT INTO main.event(sequence, timestamp, name, text, hosts, resources, sum, ledger) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, sequence).bind(2, row.timestamp).bind(3, row.name).bind(4, row.text).bind(5, row.hosts);
  if (row.resources) {
    insert.bind(6, *row.resources);
    Statement(*target_, put_resource_set)
        .bind(1, *row.resources)
        .bind(2, std::string_view(*event_.resources))
        .bind(3, sequence)
        .run();
  }
  insert.bind(7, row.sum()).bind(8, static_cast<std::int64_t>(row.ledger)).run();
}

// All before the event counts as dropped.
void StoreCopy::write_trimmed() {
  if (event_.row.sequence == 1) return;
  const auto before = static_cast<std::int64_t>(event_.row.sequence - 1);
  Statement time(*target_,
                 "SELECT timestamp FROM source.event WHERE sequence = ?1 UNION ALL "
                 "SELECT timestamp FROM source.trimmed WHERE sequence = ?1");
  WallTime timestamp = event_.row.timestamp;
  // Damaged, it may have any time.
  if (time.bind(1, before).step()) timestamp = std::min(timestamp, time.time(0));
  time.reset();
  Statement(*target_, "INSERT INTO main.trimmed(id, sequence, timestamp) VALUES (1, ?, ?)")
      .bind(1, before)
      .bind(2, timestamp)
      .run();
}

void StoreCopy::check_size() const {
  Statement size(*target_, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  size.step();
  const auto bytes = static_cast<std::size_t>(size.integer(0));
  size.reset();
  if (bytes > most_bytes_)
    throw Error(EFBIG, fmt::format("a copy of the store is larger than {} bytes", most_bytes_));
}

CopiedStore StoreCopy::finish(const module::Snapshot& states) {
  target_->execute("BEGIN");
  SnapshotRows(*target_).write(SnapshotRow(event_.row.sequence, states));
  target_->execute("COMMIT");
  check_size();
  sum_.reset();
  target_.reset();
  CopiedStore copy;
  copy.sequence = event_.row.sequence;
  copy.file = std::make_shared<os::Descriptor>(::open(file_.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (copy.file->get() < 0 || ::fstat(copy.file->get(), &status) != 0) os::fail(file_.path, errno);
  copy.bytes = static_cast<std::size_t>(status.st_size);
  return copy;
}

}  // namespace resourced::daemon::log
