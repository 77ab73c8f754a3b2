// The statements of the store: one record to its rows, and the rows of the present back to core types.
#pragma once

#include <string>
#include <vector>

#include "core/module/command.hpp"
#include "daemon/record.hpp"
#include "daemon/sqlite.hpp"

namespace resourced::daemon {

class StoreWriter {
 public:
  /// Opens the database file and takes its lock for as long as this lives.
  explicit StoreWriter(const std::string& path);

  [[nodiscard]] RecordedState load();
  [[nodiscard]] Sequence last_sequence();

  /// Writes records as one transaction: all are on disk when it returns, or none and it throws.
  void commit(const std::vector<Record>& records);

  /// Drops the oldest events that are older than `before`, at most `most` of them; what is present stays as
  /// it is, and so does the newest event. Returns how many it dropped.
  std::size_t trim(double before, std::size_t most);

  [[nodiscard]] Database& database() noexcept { return database_; }

 private:
  // Pragmas and schema must be in place before statements are prepared, so they have a member of their own.
  struct Opened : Database {
    explicit Opened(const std::string& path);
  };

  template <class Work>
  void transaction(Work work);
  void write(const Record& record);
  void write_hosts(const Record& record);
  void write_drains(const Record& record);
  void write_properties(const Record& record);

  Opened database_;
  Statement insert_event_;
  Statement insert_host_;
  Statement trim_find_;
  Statement trim_events_;
  Statement trim_hosts_;
  Statement put_trimmed_;
  Statement put_drain_;
  Statement take_drain_;
  Statement forget_drains_;
  Statement put_property_;
  Statement take_property_;
  Statement forget_properties_;
  Statement put_shrunk_;
  Statement put_expiration_;
  Statement put_inventory_;
  Statement last_sequence_;
};

}  // namespace resourced::daemon
