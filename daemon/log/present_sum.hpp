// A checksum over the tables of the present: the sum of the checksums of their rows. It is stored with each
// commit and compared when a store is opened. Temporary triggers of the connection update it on each change
// of a row, so the statements that write need not do so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

class PresentSum {
 public:
  /// The schema must have a checksum of the present (has_present_sum).
  explicit PresentSum(Database& database);
  ~PresentSum();
  PresentSum(const PresentSum&) = delete;
  PresentSum& operator=(const PresentSum&) = delete;
  PresentSum(PresentSum&&) = delete;
  PresentSum& operator=(PresentSum&&) = delete;

  /// Reads every row of the present. Throws Error EBADMSG if the rows do not match the stored sum.
  void verify();

  /// Starts with the stored sum, and updates it on each change of a row from now on.
  void watch();

  /// Writes the sum and the last event that it includes, in the transaction that has changed the rows.
  void store(Sequence last);
  /// The transaction has been committed.
  void keep() noexcept { kept_ = sum_; }
  /// The transaction was rolled back: sets the sum back to that of the last one that was committed.
  void revert() noexcept { sum_ = kept_; }

  /// Makes the row of the sum in a store that has none, and gives the store a random number. Within a
  /// transaction.
  static void begin(Database& database, Sequence last);
  /// Computes and stores the sum again after the columns of a table have changed. Within a transaction.
  static void renew(Database& database);

  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };
  /// The tables that it includes.
  [[nodiscard]] static std::vector<Table> tables(Database& database);

 private:
  [[nodiscard]] std::uint64_t compute();

  Database& database_;
  std::uint64_t sum_ = 0;
  std::uint64_t kept_ = 0;
  Statement put_;
};

}  // namespace resourced::daemon::log
