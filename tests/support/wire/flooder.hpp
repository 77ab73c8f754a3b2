// A client that sends requests as fast as it can during its lifetime, and reconnects whenever it is
// disconnected. It reads its answers, which keeps the daemon busier than a client that does not read. Its
// threads have a lower priority, so that it takes the daemon's time but not the processor of other clients.
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
  /// Floods the endpoint (ipc://, tcp:// or local://) with this request. Returns when answers have arrived.
  Flooder(const std::string& uri, const Parts& request);
  ~Flooder();
  Flooder(const Flooder&) = delete;
  Flooder& operator=(const Flooder&) = delete;

  /// The number of answers received so far.
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
