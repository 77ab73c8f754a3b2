// The file of `resourcectl eventlog --cursor`, which has the number of the last printed event.
#pragma once

#include <optional>
#include <string>

#include "proto/topics/journal.hpp"

namespace resourced::cli::commands {

class CursorFile {
 public:
  /// Reads the file if there is one. Throws Error EINVAL for a file of another kind, and Error naming the
  /// file if it cannot be read or could not be replaced.
  explicit CursorFile(std::string path);

  /// Returns the number in the file; nothing if there was no file.
  [[nodiscard]] std::optional<proto::topics::EventNumber> number() const noexcept { return number_; }

  /// Replaces the file. After this call, and after a crash at any time, it has this number or the one before.
  void write(proto::topics::EventNumber number);

 private:
  std::string path_;
  std::optional<proto::topics::EventNumber> number_;
};

}  // namespace resourced::cli::commands
