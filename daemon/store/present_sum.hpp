// A checksum over the tables of the present: the sum of the checksums of their rows, which is kept with each
// commit and compared when a store is opened. Temporary triggers of the connection see each change of a row,
// so no statement that writes has to know of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/store/records.hpp"
#include "daemon/store/sqlite.hpp"

namespace resourced::daemon::store {

class PresentSum {
 public:
  /// Of a store of the present schema.
  explicit PresentSum(Database& database);
  ~PresentSum();
  PresentSum(const PresentSum&) = delete;
  PresentSum& operator=(const PresentSum&) = delete;
  PresentSum(PresentSum&&) = delete;
  PresentSum& operator=(PresentSum&&) = delete;

  /// Looks at every row of the present. Throws Error EBADMSG if it is not as it was written.
  void verify();

  /// Follows changes of rows from here on, from the sum that is stored.
  void watch();

  /// Writes the sum, and how far the present is; within the transaction that has changed it.
  void store(Sequence last);
  /// Takes the sum to be what it was at the last store(), after a transaction that failed.
  void revert() noexcept { sum_ = stored_; }

  /// Makes the row of the sum in a store that has none, and numbers the store. Within a transaction.
  static void begin(Database& database, Sequence last);
  /// Computes and stores the sum again after the columns of a table have changed. Within a transaction.
  static void renew(Database& database);

 private:
  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };
  [[nodiscard]] static std::vector<Table> tables(Database& database);
  [[nodiscard]] std::uint64_t compute();

  Database& database_;
  std::uint64_t sum_ = 0;
  std::uint64_t stored_ = 0;
  Statement put_;
};

}  // namespace resourced::daemon::store
