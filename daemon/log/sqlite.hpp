// SQLite with owned handles and errors as exceptions, independent of the schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/time.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace resourced::daemon::log {

/// The error for a damaged store file, with advice for the operator.
[[nodiscard]] Error damaged_store(const std::string& path, std::string what);

/// A connection to an SQLite database, for one thread at a time.
class Database {
 public:
  enum class Access {
    /// Opens a file for writing, and creates it if it does not exist.
    write,
    /// Opens an existing file, which another connection may write, for reading.
    read,
  };

  /// `path` may be `:memory:`. Throws as fail() does.
  explicit Database(const std::string& path, Access access = Access::write);

  /// Runs statements that return nothing. Throws as fail() does.
  void execute(const char* statements);

  /// Waits for locks of other processes as long as `goes_on` returns true; it gets the duration of the
  /// present wait. When it returns false, and for a connection without this call, a locked file is an error.
  void wait_for_locks(std::function<bool(Seconds waited)> goes_on);

  /// Sets whether the last connection, when it closes, moves the write-ahead log into the file and removes
  /// it.
  void set_tidy_on_close(bool tidy);

  /// Counts the pages in the write-ahead log after each commit. This disables SQLite's automatic checkpoints,
  /// so checkpoint() must be called.
  void count_log_pages();
  [[nodiscard]] std::size_t log_pages() const noexcept { return *log_pages_; }
  /// Moves as much of the write-ahead log into the file as no reader needs, and waits for none. Returns true
  /// if that was all: the next commit then begins the log anew.
  bool checkpoint();

  /// Replaces the content of this database by that of another one, as of one of its commits. Throws as fail()
  /// does, and Error EBUSY if the other database is locked.
  void copy_from(Database& other);

  [[nodiscard]] sqlite3* handle() const noexcept { return handle_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Throws the last failure of the connection as an Error with file and action: ENOSPC for a full disk,
  /// EBUSY for a file that another process holds, EBADMSG for a damaged one or one of another kind, otherwise
  /// EIO.
  [[noreturn]] void fail(std::string_view action) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  struct LockWait {
    std::function<bool(Seconds)> goes_on;
    SteadyTime begun{};
  };
  std::string path_;
  // lock_wait_ and log_pages_ are on the heap, as SQLite keeps their addresses and a Database may be moved.
  std::unique_ptr<LockWait> lock_wait_ = std::make_unique<LockWait>();
  std::unique_ptr<std::size_t> log_pages_ = std::make_unique<std::size_t>(0);
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A transaction for reads: all of them see the store as of one commit. Does nothing inside another
/// transaction.
class ReadTransaction {
 public:
  explicit ReadTransaction(Database& database);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ReadTransaction(ReadTransaction&&) = delete;
  ReadTransaction& operator=(ReadTransaction&&) = delete;

 private:
  /// Null if this object is inside another transaction.
  Database* database_;
};

/// A prepared statement, used repeatedly. Columns count from 0 and parameters from 1, as in SQLite.
class Statement {
 public:
  Statement(Database& database, const char* text);

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, WallTime value) { return bind(parameter, to_number(value)); }
  /// The text must stay valid until the statement has run.
  Statement& bind(int parameter, std::string_view value);
  Statement& bind(int parameter, const std::optional<std::string>& value);

  /// Moves to the next row. Returns false after the last one; the statement is then ready to be bound again.
  bool step();
  /// Runs a statement that returns no rows.
  void run();
  /// Drops the remaining rows.
  void reset() noexcept;

  [[nodiscard]] bool is_null(int column) const noexcept;
  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  [[nodiscard]] double real(int column) const noexcept;
  [[nodiscard]] WallTime time(int column) const noexcept { return wall_time(real(column)); }
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::optional<std::string> optional_text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace resourced::daemon::log
