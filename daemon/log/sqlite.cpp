#include "daemon/log/sqlite.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "core/error.hpp"

namespace resourced::daemon::log {

Error damaged_store(const std::string& path, std::string what) {
  // An error message of SQLite may have several lines.
  std::ranges::replace(what, '\n', ' ');
  return {EBADMSG,
          fmt::format("{}: damaged, or not a store ({}); restore its directory from a backup, or move "
                      "it away to start without what was recorded",
                      path, what)};
}

void Database::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

namespace {

/// Takes the rights of other users from the store's files. SQLite gives later files the rights of the first
/// one. Files of another owner stay as they are.
void keep_files_private(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) (void)!::chmod((path + suffix).c_str(), S_IRUSR | S_IWUSR);
}

}  // namespace

Database::Database(const std::string& path, Access access) : path_(path) {
  sqlite3* handle = nullptr;
  const int mode = access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int result = sqlite3_open_v2(path.c_str(), &handle, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (result != SQLITE_OK) fail("cannot open the store");
  if (access != Access::read) keep_files_private(path);
}

void Database::fail(std::string_view action) const {
  int errnum = EIO;
  switch (sqlite3_errcode(handle_.get())) {
    case SQLITE_FULL:
      errnum = ENOSPC;
      break;
    case SQLITE_BUSY:
      errnum = EBUSY;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw damaged_store(path_, sqlite3_errmsg(handle_.get()));
    default:
      break;
  }
  throw Error(errnum, fmt::format("{}: {}: {}", path_, action, sqlite3_errmsg(handle_.get())));
}

void Database::wait_for_locks(std::function<bool(Seconds waited)> goes_on) {
  lock_wait_->goes_on = std::move(goes_on);
  sqlite3_busy_handler(
      handle_.get(),
      [](void* wait, int count) {
        constexpr std::chrono::milliseconds pause{5};
        auto& lock_wait = *static_cast<LockWait*>(wait);
        const SteadyTime now(std::chrono::steady_clock::now().time_since_epoch());
        if (count == 0) lock_wait.begun = now;
        if (!lock_wait.goes_on(now - lock_wait.begun)) return 0;
        std::this_thread::sleep_for(pause);
        return 1;
      },
      lock_wait_.get());
}

void Database::set_tidy_on_close(bool tidy) {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, tidy ? 0 : 1, nullptr);
}

void Database::count_log_pages() {
  sqlite3_wal_hook(
      handle_.get(),
      [](void* pages, sqlite3* /*handle*/, const char* /*database*/, int count) {
        *static_cast<std::size_t*>(pages) = static_cast<std::size_t>(count);
        return SQLITE_OK;
      },
      log_pages_.get());
}

bool Database::checkpoint() {
  int pages = 0;
  int moved = 0;
  const int result =
      sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
  if (result != SQLITE_OK && result != SQLITE_BUSY) fail("the store failed");
  return result == SQLITE_OK && pages == moved;
}

void Database::copy_from(Database& other) {
  sqlite3_backup* copy = sqlite3_backup_init(handle_.get(), "main", other.handle_.get(), "main");
  if (copy == nullptr) fail("cannot be copied to");
  sqlite3_backup_step(copy, -1);
  // sqlite3_backup_finish() also returns the error of the step.
  if (sqlite3_backup_finish(copy) != SQLITE_OK) fail("cannot be copied");
}

void Database::execute(const char* statements) {
  if (sqlite3_exec(handle_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail("the store failed");
}

ReadTransaction::ReadTransaction(Database& database)
    : database_(sqlite3_get_autocommit(database.handle()) == 0 ? nullptr : &database) {
  if (database_ != nullptr) database_->execute("BEGIN");
}

ReadTransaction::~ReadTransaction() {
  if (database_ == nullptr) return;
  try {
    database_->execute("COMMIT");
  } catch (const Error&) {
    // COMMIT fails if a failed statement has ended the transaction already; there was nothing to commit.
  }
}

Statement::Statement(Database& database, const char* text) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(database.handle(), text, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    database.fail("the store has not the tables of its schema");
  }
  statement_.reset(statement);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  sqlite3_bind_double(statement_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view value) {
  if (sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(), SQLITE_STATIC,
                          SQLITE_UTF8) != SQLITE_OK)
    throw Error(EFBIG, fmt::format("{} bytes are too many for a row of the store", value.size()));
  return *this;
}

Statement& Statement::bind(int parameter, const std::optional<std::string>& value) {
  if (value) return bind(parameter, std::string_view(*value));
  sqlite3_bind_null(statement_.get(), parameter);
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) {
    // reset() replaces the connection's error message, so the error is made first.
    try {
      database_.fail("the store failed");
    } catch (...) {
      reset();
      throw;
    }
  }
  reset();
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() noexcept {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

bool Statement::is_null(int column) const noexcept {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const noexcept {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const noexcept { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const { return optional_text(column).value_or(""); }

std::optional<std::string> Statement::optional_text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) return std::nullopt;
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace resourced::daemon::log
