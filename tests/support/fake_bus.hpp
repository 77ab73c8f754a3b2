// The daemon's end of the bus for tests of clients: a ROUTER socket in raw libzmq that a test drives by hand,
// in the same thread as the client under test. Waits for events with a deadline that only a broken test
// reaches.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "client/connection.hpp"

namespace resourced::test {

inline constexpr std::chrono::seconds deadline{20};

/// A directory of the test's own, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "resourced-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Lets the client work until the condition holds.
inline void pump(client::Connection& connection, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("what was waited for did not happen");
    connection.wait(std::chrono::milliseconds(100));
  }
}

/// A request as the ROUTER got it, identity first.
struct Frames {
  std::vector<std::string> parts;

  [[nodiscard]] const std::string& identity() const { return parts.at(0); }
  [[nodiscard]] const std::string& topic() const { return parts.at(2); }
  [[nodiscard]] const std::string& proto() const { return parts.back(); }
  /// Without the terminating NUL; "" if there is none.
  [[nodiscard]] std::string payload() const {
    if (parts.size() != 5) return {};
    return {parts[3].data(), parts[3].size() - 1};
  }
  [[nodiscard]] unsigned flags() const { return static_cast<unsigned char>(proto().at(3)); }
  [[nodiscard]] std::string matchtag() const { return proto().substr(16, 4); }
};

class FakeBus {
 public:
  explicit FakeBus(std::string uri) : uri_(std::move(uri)), context_(zmq_ctx_new()) { open(); }
  ~FakeBus() {
    close();
    zmq_ctx_term(context_);
  }
  FakeBus(const FakeBus&) = delete;
  FakeBus& operator=(const FakeBus&) = delete;

  void open() {
    router_ = zmq_socket(context_, ZMQ_ROUTER);
    const int linger = 1000;
    zmq_setsockopt(router_, ZMQ_LINGER, &linger, sizeof(linger));
    const int unlimited = 0;
    zmq_setsockopt(router_, ZMQ_SNDHWM, &unlimited, sizeof(unlimited));
    if (zmq_bind(router_, uri_.c_str()) != 0) throw std::runtime_error(zmq_strerror(errno));
  }
  /// Goes away as a daemon does that ends; what was sent still leaves. When this returns nobody can connect.
  void close() {
    if (router_ == nullptr) return;
    zmq_close(router_);
    router_ = nullptr;
    // libzmq closes the listening socket in a thread of its own.
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (somebody_listens()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the bus does not close");
      std::this_thread::yield();
    }
  }

  /// The next request, while the client works.
  Frames receive(client::Connection& connection) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (std::chrono::steady_clock::now() < end) {
      zmq_pollitem_t items[] = {{router_, 0, ZMQ_POLLIN, 0}, {nullptr, connection.fd(), ZMQ_POLLIN, 0}};
      zmq_poll(items, 2, 100);
      if ((items[0].revents & ZMQ_POLLIN) != 0) return receive_now();
      if ((items[1].revents & ZMQ_POLLIN) != 0) connection.process();
    }
    throw std::runtime_error("no request came");
  }

  /// The next request; the client works in another thread, or has ended.
  Frames receive() {
    zmq_pollitem_t item{router_, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, static_cast<long>(std::chrono::milliseconds(deadline).count())) != 1) {
      throw std::runtime_error("no request came");
    }
    return receive_now();
  }

  /// Whether no request comes within this time.
  [[nodiscard]] bool quiet(std::chrono::milliseconds patience = std::chrono::milliseconds(0)) {
    zmq_pollitem_t item{router_, 0, ZMQ_POLLIN, 0};
    return zmq_poll(&item, 1, static_cast<long>(patience.count())) == 0;
  }

  /// A success with this payload, or without one where it is "". `stream`: with the streaming flag.
  void respond(const Frames& request, std::string_view payload, bool stream = false) {
    const unsigned flags = 0x08U | 0x01U | (payload.empty() ? 0U : 0x02U) | (stream ? 0x40U : 0U);
    send(request, payload, flags, 0);
  }
  void fail(const Frames& request, int errnum, std::string_view text = {}) {
    const unsigned flags = 0x08U | 0x01U | (text.empty() ? 0U : 0x02U);
    send(request, text, flags, errnum);
  }

  void send_parts(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
      if (zmq_send(router_, parts[i].data(), parts[i].size(), more) < 0) {
        throw std::runtime_error(zmq_strerror(errno));
      }
    }
  }

 private:
  [[nodiscard]] bool somebody_listens() const {
    constexpr std::string_view scheme = "ipc://";
    if (!uri_.starts_with(scheme)) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    uri_.copy(address.sun_path, sizeof(address.sun_path) - 1, scheme.size());
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    ::close(probe);
    return connected;
  }

  Frames receive_now() {
    Frames frames;
    int more = 1;
    while (more != 0) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      if (zmq_msg_recv(&part, router_, 0) < 0) throw std::runtime_error(zmq_strerror(errno));
      frames.parts.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
      more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    return frames;
  }

  void send(const Frames& request, std::string_view payload, unsigned flags, int errnum) {
    std::string proto = request.proto();
    proto[2] = 2;
    proto[3] = static_cast<char>(flags);
    proto[12] = proto[13] = proto[14] = 0;
    proto[15] = static_cast<char>(errnum);
    std::vector<std::string> parts{request.identity(), "", request.topic()};
    if (!payload.empty()) parts.push_back(std::string(payload) + '\0');
    parts.push_back(proto);
    send_parts(parts);
  }

  std::string uri_;
  void* context_;
  void* router_ = nullptr;
};

}  // namespace resourced::test
