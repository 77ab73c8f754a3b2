// leased_scheduler URI PARTITION: holds a partition with a lease of 5 s, and acquires it again whenever the
// daemon has ended that. Prints a line of JSON each time: {"up": IDSET} or {"errno": NUMBER, "text": STRING}.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace {

using namespace resourced;

class Scheduler final : public client::AcquisitionObserver {
 public:
  Scheduler(const std::string& uri, const std::string& partition) : connection_(uri) {
    options_.partition = partition;
    options_.lease = client::Milliseconds(5000);
    options_.wait = true;
  }

  /// Acquires, and returns when the acquisition has ended.
  void acquire() {
    acquisition_.emplace(connection_, *this, options_);
    connection_.run();
  }

  void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& up) override {
    print({{"up", up.encode()}});
  }
  void on_error(const Error& why) override {
    print({{"errno", why.errnum()}, {"text", why.what()}});
    connection_.stop();
  }

 private:
  static void print(const nlohmann::json& line) {
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }

  client::Connection connection_;
  client::AcquisitionOptions options_;
  std::optional<client::Acquisition> acquisition_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  Scheduler scheduler(argv[1], argv[2]);
  for (;;) scheduler.acquire();
} catch (const std::exception& error) {
  std::fprintf(stderr, "leased_scheduler: %s\n", error.what());
  return 1;
}
