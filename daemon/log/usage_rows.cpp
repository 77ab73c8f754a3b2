#include "daemon/log/usage_rows.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/checksum.hpp"

namespace resourced::daemon::log {

namespace {

std::int64_t month_sum(module::Month month, std::string_view text) noexcept {
  return Checksum().add(std::int64_t{month}).add(text).value();
}

std::int64_t end_sum(const RolledUp& end) noexcept {
  return Checksum().add(static_cast<std::int64_t>(end.sequence)).add(end.since).add(end.until).value();
}

}  // namespace

UsageReader::UsageReader(Database& database)
    : database_(database),
      rolled_up_(database, "SELECT sequence, since, until, sum FROM rolled_up"),
      month_(database, "SELECT text, sum FROM usage WHERE month = ?"),
      size_(
          database,
          "SELECT coalesce((SELECT length(CAST(text AS BLOB)) FROM usage ORDER BY month DESC LIMIT 1), 0)") {}

void UsageReader::fail(std::string_view what) const {
  throw Error(EBADMSG,
              fmt::format("{}: {} of the roll-ups is damaged; ask for a later time, or restore a backup",
                          database_.path(), what));
}

std::optional<RolledUp> UsageReader::rolled_up() {
  std::optional<RolledUp> end;
  bool is_whole = true;
  if (rolled_up_.step()) {
    end = {static_cast<Sequence>(rolled_up_.integer(0)), rolled_up_.integer(1), rolled_up_.integer(2)};
    is_whole = end_sum(*end) == rolled_up_.integer(3);
  }
  rolled_up_.reset();
  if (!is_whole) fail("the end");
  return end;
}

std::optional<RolledUp> UsageReader::sound_end() {
  try {
    return rolled_up();
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    return std::nullopt;
  }
}

std::string UsageReader::month(module::Month month) {
  std::string text = "[]";
  bool is_whole = true;
  if (month_.bind(1, std::int64_t{month}).step()) {
    text = month_.text(0);
    is_whole = month_sum(month, text) == month_.integer(1);
  }
  month_.reset();
  if (!is_whole) fail(module::month_name(month));
  return text;
}

std::size_t UsageReader::last_size() {
  size_.step();
  const auto size = static_cast<std::size_t>(size_.integer(0));
  size_.reset();
  return size;
}

UsageRows::UsageRows(Database& database)
    : put_month_(database, "INSERT OR REPLACE INTO usage(month, text, sum) VALUES (?, ?, ?)"),
      put_end_(database,
               "INSERT OR REPLACE INTO rolled_up(id, sequence, since, until, sum) VALUES (1, ?, ?, ?, ?)") {}

void UsageRows::write(const RollUp& extension) {
  for (const auto& [month, text] : extension.texts) {
    put_month_.bind(1, std::int64_t{month})
        .bind(2, std::string_view(text))
        .bind(3, month_sum(month, text))
        .run();
  }
  const RolledUp& end = extension.end;
  put_end_.bind(1, static_cast<std::int64_t>(end.sequence))
      .bind(2, std::int64_t{end.since})
      .bind(3, std::int64_t{end.until})
      .bind(4, end_sum(end))
      .run();
}

}  // namespace resourced::daemon::log
