// What the machine does at best, for the same work or less: a bare ROUTER/DEALER round trip between two
// processes, a block appended and on the disk, bytes copied in memory, a process that ends at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "bench/measure/row.hpp"

namespace resourced::bench {

class Limits {
 public:
  /// `directory` is on the disk that is measured; `self` is this program, which echoes when it is asked to.
  /// What a limit needs is made when it is first measured: before that this program has one thread, which
  /// allocates memory faster than one of many.
  Limits(std::string directory, std::string self);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  /// There and back, with parts of the sizes that a drain has.
  [[nodiscard]] Sampler round_trip() const;
  /// 4 KiB appended, and fdatasync. Appended blocks make the file longer, so that the file system has
  /// something to record as well.
  [[nodiscard]] Sampler commit() const;
  [[nodiscard]] Sampler round_trip_and_commit() const;
  /// `size` is asked when it is first measured.
  [[nodiscard]] static Sampler copy(std::function<std::size_t()> size);
  [[nodiscard]] static Sampler process();

 private:
  class RoundTrip;
  class Commit;
  std::string directory_;
  std::string self_;
  mutable std::unique_ptr<RoundTrip> round_trip_;
  mutable std::unique_ptr<Commit> commit_;
};

/// Sends every message back, until it is killed.
[[noreturn]] void echo(const char* uri);

}  // namespace resourced::bench
