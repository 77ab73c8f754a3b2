#include "bench/load/limits.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/load/bus_client.hpp"
#include "bench/measure/timing.hpp"
#include "harness/process.hpp"
#include "temp_dir.hpp"

namespace resourced::bench {

class Limits::RoundTrip {
 public:
  RoundTrip(const std::string& directory, const std::string& self)
      : dir_(directory), uri_("ipc://" + (dir_ / "echo").string()), echo_({self, "--echo", uri_}) {
    echo_.expect_line();
    dealer_ = std::make_unique<BusClient>(uri_);
  }

  void once() {
    dealer_->send("resource.drain", R"({"targets":"12345","reason":"measured"})");
    dealer_->receive_raw();
  }

  void many(std::size_t count) {
    static const std::string alloc =
        R"({"id":"j12345","R":{"version":1,"execution":{"R_lite":[{"rank":"12345","children":{"core":"95"}}],)"
        R"("nodelist":["node12345"],"starttime":0.0,"expiration":0.0}}})";
    constexpr std::size_t in_flight = 256;
    for (std::size_t i = 0; i < count + in_flight; ++i) {
      if (i >= in_flight) dealer_->receive_raw();
      if (i < count) dealer_->send("resource.alloc", alloc);
    }
  }

 private:
  test::TempDir dir_;
  std::string uri_;
  e2e::Process echo_;
  std::unique_ptr<BusClient> dealer_;
};

class Limits::Commit {
 public:
  explicit Commit(const std::string& directory)
      : dir_(directory), fd_(::open((dir_ / "block").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), (dir_ / "block").string());
  }
  ~Commit() { ::close(fd_); }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  void once() const {
    static const std::string block(4096, 'x');
    if (::write(fd_, block.data(), block.size()) < 0 || ::fdatasync(fd_) != 0) {
      throw std::system_error(errno, std::generic_category(), "commit");
    }
  }

 private:
  test::TempDir dir_;
  int fd_;
};

Limits::Limits(std::string directory, std::string self)
    : directory_(std::move(directory)), self_(std::move(self)) {}

Limits::~Limits() = default;

Sampler Limits::round_trip() const {
  return [this] {
    if (!round_trip_) round_trip_ = std::make_unique<RoundTrip>(directory_, self_);
    return time_of([this] { round_trip_->once(); });
  };
}

Sampler Limits::round_trip_of_many() const {
  return [this] {
    constexpr std::size_t count = 4096;
    if (!round_trip_) round_trip_ = std::make_unique<RoundTrip>(directory_, self_);
    return time_of([this] { round_trip_->many(count); }) / count;
  };
}

Sampler Limits::commit() const {
  return [this] {
    if (!commit_) commit_ = std::make_unique<Commit>(directory_);
    return time_of([this] { commit_->once(); });
  };
}

Sampler Limits::round_trip_and_commit() const {
  return [trip = round_trip(), commit = commit()] { return trip() + commit(); };
}

Sampler Limits::copy(std::function<std::size_t()> size) {
  return [size = std::move(size), copy = Sampler()]() mutable {
    if (!copy) {
      const std::size_t bytes = size();
      copy = repeated([from = std::string(bytes, 'x'), to = std::string(bytes, ' ')]() mutable {
        std::memcpy(to.data(), from.data(), from.size());
        keep(to);
        return 0;
      });
    }
    return copy();
  };
}

Sampler Limits::process() {
  return [] { return time_of([] { (void)e2e::Process({"/bin/true"}).finish(); }); };
}

void echo(const char* uri) {
  void* context = ::zmq_ctx_new();
  void* router = ::zmq_socket(context, ZMQ_ROUTER);
  if (::zmq_bind(router, uri) != 0) throw std::runtime_error(::zmq_strerror(::zmq_errno()));
  std::puts("ready");
  std::fflush(stdout);
  while (true) {
    zmq_msg_t part;
    ::zmq_msg_init(&part);
    ::zmq_msg_recv(&part, router, 0);
    const int more = ::zmq_msg_more(&part) != 0 ? ZMQ_SNDMORE : 0;
    ::zmq_msg_send(&part, router, more);
  }
}

}  // namespace resourced::bench
