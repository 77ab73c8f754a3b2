// A client that asks as fast as it can, for as long as it lives, and connects again whenever it is cut off.
// It reads what it is answered, which keeps the daemon busier than silence would. Its threads stand back
// behind others, so that it takes the daemon's time and not the processor's.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "wire/codec.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::wire {

class Flooder {
 public:
  /// Sends this request, to ipc://, tcp:// or local://. Returns when answers have come.
  Flooder(const std::string& uri, const Parts& request);
  ~Flooder();
  Flooder(const Flooder&) = delete;
  Flooder& operator=(const Flooder&) = delete;

  /// How many answers it has had.
  [[nodiscard]] std::uint64_t answers() const { return answers_; }

 private:
  void flood_bus(const std::string& uri, const Parts& request);
  void flood_local(const std::string& uri, const Parts& request);
  void flood_connection(const RawSocket& socket, const std::string& frames);

  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> answers_ = 0;
  std::thread thread_;
};

}  // namespace resourced::wire
