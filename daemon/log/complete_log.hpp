// A log as lines of JSON that lose nothing: the State follows from them exactly (`resourced --export
// --complete`). The line of an event is its line in the log (proto::encode_event); a key "resourced" beside
// its context has the rest of the event (proto::encode_rest), if it has one. Each of the other lines has the
// key "resourced" alone. The first line says that the events begin after event N, which was at time T, and
// end with event M. A document stands before the first line that names it by its SHA-256. The State after
// event N stands before the events, unless N is 0:
//
//   {"resourced":{"format":1,"after":N,"timestamp":T,"last":M}}
//   {"resourced":{"document":TEXT}}
//   {"resourced":{"snapshot":STATE}}
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/module/module.hpp"
#include "core/module/state.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "proto/documents.hpp"

namespace resourced::daemon::log {

class StoreWriter;

/// Whether a log is complete, by its first line.
[[nodiscard]] bool is_complete(std::string_view first_line) noexcept;

/// Makes the lines of a log, each with its line end.
class CompleteWriter {
 public:
  /// Returns the lines before the events. `base` has the State after event `base.sequence`, which is null if
  /// that is 0. `last` is the last event.
  [[nodiscard]] std::string begin(const StoreBase& base, Sequence last);
  /// Returns the line of an event, after those of the documents that it is the first to name. Throws what
  /// event_of() does.
  [[nodiscard]] std::string add(const LoggedEvent& event, const proto::FindDocument& find);

 private:
  void put_document(const std::string& name, std::string_view text, std::string& lines);

  std::set<std::string> documents_;
};

/// Reads the lines, and applies the events to a State. Each function throws Error EINVAL, or EPROTO from a
/// codec, for a line that CompleteWriter does not make.
class CompleteReader {
 public:
  explicit CompleteReader(std::string_view first_line);

  /// Reads the next line. Returns the record of an event, nothing for any other line.
  std::optional<Record> read(std::string_view line);
  /// Checks that the log has ended as its first line says.
  void end() const;

  [[nodiscard]] const StoreBase& base() const noexcept { return base_; }
  /// The State after the events so far.
  [[nodiscard]] const module::State& state() const noexcept { return module_.state(); }

 private:
  void read_own(std::string_view line);
  [[nodiscard]] proto::DocumentText document(const std::string& name) const;

  StoreBase base_;
  Sequence at_ = 0;
  Sequence last_ = 0;
  WallTime timestamp_{};
  std::map<std::string, proto::DocumentText> documents_;
  module::Module module_;
};

/// Writes the log of a store from the first event on from which its State is known. `print` gets lines.
/// Throws Error EBADMSG for a damaged log.
void write_complete(StoreWriter& store, const std::function<void(const std::string&)>& print);

/// Writes the log of a copy of the store of a state directory (read_copy()), as write_complete() does. Throws
/// Error ENOENT, too, if there is no store.
void export_complete(const std::string& directory, const std::function<void(const std::string&)>& print);

}  // namespace resourced::daemon::log
