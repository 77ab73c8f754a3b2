// SQLite with owned handles and errors as exceptions; nothing here knows what is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace resourced::daemon {

/// A connection. For one thread at a time.
class Database {
 public:
  /// Opens or makes a file. Throws Error EIO that names it.
  explicit Database(const std::string& path);

  /// Runs statements that return nothing. Throws as fail() does.
  void execute(const char* statements);

  [[nodiscard]] sqlite3* handle() const noexcept { return handle_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Throws the present failure of the connection, with file and action named: ENOSPC for a full disk, EBUSY
  /// for a file that another process holds, EBADMSG for a damaged one or one of another kind, otherwise EIO.
  [[noreturn]] void fail(std::string_view action) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement, used again and again. Columns and parameters count from 0 and 1, as SQLite has them.
class Statement {
 public:
  Statement(Database& database, const char* text);

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  /// The text must stay valid until the statement has run.
  Statement& bind(int parameter, std::string_view value);
  Statement& bind(int parameter, const std::optional<std::string>& value);

  /// Moves to the next row; false after the last one, and the statement is ready to be bound again.
  bool step();
  /// Runs a statement that returns no rows.
  void run();
  /// Gives up the rows that are left.
  void reset() noexcept;

  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  [[nodiscard]] double real(int column) const noexcept;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::optional<std::string> optional_text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace resourced::daemon
