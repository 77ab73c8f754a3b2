// A copy of the present of a store, for a member of a cluster that has not followed the log: a store of the
// same schema whose log has its last event alone, and the states after it. The past stays behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/module/snapshot.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/present_sum.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::os {
class Descriptor;
}

namespace resourced::daemon::log {

struct CopiedStore {
  /// Its last event.
  Sequence sequence = 0;
  std::size_t bytes = 0;
  /// The file has no name any more.
  std::shared_ptr<const os::Descriptor> file;

  /// So many bytes from this offset. Throws Error if the file ends before.
  [[nodiscard]] std::string read(std::size_t offset, std::size_t size) const;
};

/// Made in steps, as one transaction that reads the store at one of its commits.
class StoreCopy {
 public:
  /// `source` is the file of an open store. Writes to `path`, which is replaced. Throws Error as Database
  /// does, and ENODATA for a store without events.
  StoreCopy(const std::string& source, std::string path, std::size_t most_bytes);
  ~StoreCopy() = default;
  StoreCopy(const StoreCopy&) = delete;
  StoreCopy& operator=(const StoreCopy&) = delete;
  StoreCopy(StoreCopy&&) = delete;
  StoreCopy& operator=(StoreCopy&&) = delete;

  [[nodiscard]] Sequence sequence() const noexcept { return event_.row.sequence; }
  /// Copies the next rows; true once all are copied, and the source is not read any more. Throws Error EFBIG
  /// once the copy is larger than `most_bytes`, EBADMSG if the last event is damaged.
  [[nodiscard]] bool advance();
  /// `states` are those after the event. No other function may be called after it.
  [[nodiscard]] CopiedStore finish(const module::Snapshot& states);

 private:
  /// The statements that copy a table.
  struct Table {
    Table(Database& database, const std::string& name, int columns);
    Statement select;
    Statement insert;
    int columns;
  };
  /// The last event, with hosts that are numbered anew.
  struct LastEvent {
    EventRow row;
    std::string name;
    std::string text;
    std::string hosts;
    std::vector<text::IdSet::Id> ids;
    std::optional<std::string> resources;
  };

  void read_event(Sequence last);
  void copy_rows();
  void copy_hosts();
  void write_event();
  void write_trimmed();
  void check_size() const;

  /// Removes the file, also of a copy that cannot be begun.
  struct File {
    explicit File(std::string name) : path(std::move(name)) {}
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    File(File&&) = delete;
    File& operator=(File&&) = delete;
    const std::string path;
  };

  const File file_;
  const std::size_t most_bytes_;
  std::unique_ptr<Database> target_;
  std::unique_ptr<PresentSum> sum_;
  std::vector<std::unique_ptr<Table>> tables_;
  LastEvent event_;
  std::size_t hosts_copied_ = 0;
};

}  // namespace resourced::daemon::log
