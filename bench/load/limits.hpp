// The best times of this machine for the same work or a part of it: a bare ROUTER/DEALER round trip between
// two processes, one at a time or many in flight, an append with fdatasync, a copy in memory, and a process
// that ends at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "bench/measure/row.hpp"

namespace resourced::bench {

class Limits {
 public:
  /// Prepares the limits; `directory` is on the disk to measure; `self` is this program, which runs again
  /// with --echo. Each limit starts its threads and processes when it is first measured: until then this
  /// program has one thread, with which it allocates memory faster than with several.
  Limits(std::string directory, std::string self);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  /// Measures a request and its response, with parts of the sizes of a drain.
  [[nodiscard]] Sampler round_trip() const;
  /// Measures a round trip while 256 are in flight, with parts of the sizes of an alloc of a core.
  [[nodiscard]] Sampler round_trip_of_many() const;
  /// Appends 4 KiB and calls fdatasync. Appending makes the file longer, so the file system has metadata to
  /// write too.
  [[nodiscard]] Sampler commit() const;
  [[nodiscard]] Sampler round_trip_and_commit() const;
  /// Measures a copy of `size()` bytes, which it calls at the first measurement.
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
