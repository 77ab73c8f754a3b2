// A ZeroMQ client with all that a hostile one can set: its identity, keys that it should not have, or none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/deadline.hpp"
#include "target.hpp"

namespace resourced::e2e {

struct DealerOptions {
  std::string identity = {};
  /// CURVE, if both are there.
  const Keys* keys = nullptr;
  std::string server_key = {};
  /// The PLAIN mechanism.
  std::string user = {};
  /// How many messages libzmq takes in before anyone receives them.
  int receive_hwm = 1000;
};

class Dealer {
 public:
  explicit Dealer(const std::string& uri, const DealerOptions& options = {});
  ~Dealer();
  Dealer(const Dealer&) = delete;
  Dealer& operator=(const Dealer&) = delete;

  /// False if there is no room for it now.
  bool send(const std::vector<std::string>& parts);
  /// The parts of the next message, nothing if none comes in time.
  std::optional<std::vector<std::string>> receive(const Deadline& deadline = Deadline());

 private:
  void* context_;
  void* socket_;
};

}  // namespace resourced::e2e
