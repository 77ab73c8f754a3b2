// Notifications of systemd (sd_notify(3)), also when nobody reads them.
#include "os/service.hpp"

#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "environment.hpp"
#include "temp_dir.hpp"

namespace {

using namespace resourced;

/// The notification socket of a service manager.
class Manager {
 public:
  explicit Manager(const std::string& path) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Manager() { ::close(descriptor_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  [[nodiscard]] std::string read() const {
    char buffer[512];
    const ssize_t size = ::recv(descriptor_, buffer, sizeof buffer, 0);
    return {buffer, static_cast<std::size_t>(size < 0 ? 0 : size)};
  }

 private:
  int descriptor_;
};

}  // namespace

TEST_CASE("notifications arrive in their order") {
  const test::TempDir dir;
  const test::Variable variable("NOTIFY_SOCKET", dir.file("notify"));
  const Manager manager(dir.file("notify"));
  os::notify_ready("serving 8 nodes");
  os::notify_status("serving 9 nodes");
  os::notify_stopping();
  CHECK(manager.read() == "READY=1\nSTATUS=serving 8 nodes");
  CHECK(manager.read() == "STATUS=serving 9 nodes");
  CHECK(manager.read() == "STOPPING=1");
}

TEST_CASE("a socket that nobody reads holds up nothing, and what fits arrives later") {
  const test::TempDir dir;
  const test::Variable variable("NOTIFY_SOCKET", dir.file("notify"));
  const Manager manager(dir.file("notify"));
  os::notify_ready();
  // More messages than any queue of the kernel holds.
  for (int i = 0; i < 20'000; ++i) os::notify_status(std::to_string(i));
  CHECK(manager.read() == "READY=1");
  CHECK(manager.read() == "STATUS=0");
}

TEST_CASE("without a manager nothing is sent") {
  const test::Variable variable("NOTIFY_SOCKET", std::nullopt);
  os::notify_ready();
  os::notify_status("x");
}
