#include "daemon/log/present_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include <fmt/format.h>
#include <sqlite3.h>

#include "daemon/log/checksum.hpp"

namespace resourced::daemon::log {
namespace {

// Tables of the past, whose rows have checksums of their own, and the row of the sum itself.
constexpr std::array<std::string_view, 7> of_the_past{"event", "event_block", "resource_set", "snapshot",
                                                      "usage", "rolled_up",   "present"};

void add_value(Checksum& sum, sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_NULL:
      sum.add_null();
      break;
    case SQLITE_INTEGER:
      sum.add(std::int64_t{sqlite3_value_int64(value)});
      break;
    case SQLITE_FLOAT:
      sum.add(sqlite3_value_double(value));
      break;
    default: {
      const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
      sum.add(std::string_view(bytes == nullptr ? "" : bytes,
                               static_cast<std::size_t>(sqlite3_value_bytes(value))));
    }
  }
}

// present_row(1 or -1, table, column...): adds the checksum of a row, or takes it away.
void add_row(sqlite3_context* context, int count, sqlite3_value** values) {
  Checksum row;
  for (int i = 1; i < count; ++i) add_value(row, values[i]);
  auto& sum = *static_cast<std::uint64_t*>(sqlite3_user_data(context));
  const auto value = std::bit_cast<std::uint64_t>(row.value());
  sum += sqlite3_value_int(values[0]) > 0 ? value : std::uint64_t{0} - value;
  sqlite3_result_null(context);
}

void set_function(Database& database, std::uint64_t* sum) {
  sqlite3_create_function_v2(database.handle(), "present_row", -1, SQLITE_UTF8, sum,
                             sum == nullptr ? nullptr : add_row, nullptr, nullptr, nullptr);
}

}  // namespace

PresentSum::PresentSum(Database& database)
    : database_(database), put_(database, "UPDATE present SET sequence = ?, sum = ?") {
  set_function(database_, &sum_);
}

PresentSum::~PresentSum() { set_function(database_, nullptr); }

std::vector<PresentSum::Table> PresentSum::tables(Database& database) {
  std::vector<Table> tables;
  Statement names(database,
                  "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND "
                  "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name");
  while (names.step()) {
    const std::string name = names.text(0);
    if (std::ranges::find(of_the_past, name) == of_the_past.end()) tables.push_back({name, {}});
  }
  Statement columns(database, "SELECT name FROM pragma_table_info(?) ORDER BY cid");
  for (Table& table : tables) {
    columns.bind(1, std::string_view(table.name));
    while (columns.step()) table.columns.push_back(columns.text(0));
  }
  return tables;
}

std::uint64_t PresentSum::compute() {
  sum_ = 0;
  for (const Table& table : tables(database_)) {
    const std::string text = fmt::format("SELECT present_row(1, '{0}', {1}) FROM main.{0}", table.name,
                                         fmt::join(table.columns, ", "));
    Statement(database_, text.c_str()).run();
  }
  return sum_;
}

void PresentSum::verify() {
  for (const Table& table : tables(database_)) {
    // Finds rows that are out of order, which the statements here would miss.
    Statement check(database_, fmt::format("PRAGMA main.integrity_check({})", table.name).c_str());
    while (check.step()) {
      if (check.text(0) != "ok") throw damaged_store(database_.path(), table.name + ": " + check.text(0));
    }
  }
  Statement written(database_, "SELECT sequence, sum FROM present");
  if (!written.step()) throw damaged_store(database_.path(), "present has no row");
  const std::int64_t sequence = written.integer(0);
  const auto sum = std::bit_cast<std::uint64_t>(written.integer(1));
  written.reset();
  if (compute() != sum)
    throw damaged_store(database_.path(), "the tables of the present do not match their checksum");
  Statement last(database_, "SELECT coalesce(max(sequence), 0) FROM event");
  last.step();
  if (last.integer(0) != sequence) {
    throw damaged_store(database_.path(), fmt::format("the log ends with event {}, the present is as of {}",
                                                      last.integer(0), sequence));
  }
  last.reset();
}

void PresentSum::watch() {
  Statement written(database_, "SELECT sum FROM present");
  written.step();
  sum_ = kept_ = std::bit_cast<std::uint64_t>(written.integer(0));
  written.reset();
  // Without this setting, rows that REPLACE deletes fire no trigger.
  std::string text = "PRAGMA recursive_triggers=ON;";
  for (const Table& table : tables(database_)) {
    const auto row = [&](int sign, std::string_view of) {
      return fmt::format("SELECT present_row({}, '{}', {}.{}); ", sign, table.name, of,
                         fmt::join(table.columns, fmt::format(", {}.", of)));
    };
    const auto trigger = [&](std::string_view event, const std::string& body) {
      text += fmt::format("CREATE TEMP TRIGGER present_{0}_{1} AFTER {1} ON main.{0} BEGIN {2}END;",
                          table.name, event, body);
    };
    trigger("INSERT", row(1, "NEW"));
    trigger("DELETE", row(-1, "OLD"));
    trigger("UPDATE", row(-1, "OLD") + row(1, "NEW"));
  }
  database_.execute(text.c_str());
}

void PresentSum::store(Sequence last) {
  put_.bind(1, static_cast<std::int64_t>(last)).bind(2, std::bit_cast<std::int64_t>(sum_)).run();
}

void PresentSum::renew(Database& database) {
  Statement present(database, "SELECT sequence FROM present");
  present.step();
  const auto last = static_cast<Sequence>(present.integer(0));
  present.reset();
  PresentSum sum(database);
  (void)sum.compute();
  sum.store(last);
}

void PresentSum::begin(Database& database, Sequence last) {
  database.execute("INSERT INTO present(id, store, sequence, sum) VALUES (1, random(), 0, 0)");
  PresentSum sum(database);
  (void)sum.compute();
  sum.store(last);
}

}  // namespace resourced::daemon::log
