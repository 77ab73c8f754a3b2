#include "flux/keeper/keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "flux/keeper/attacher.hpp"
#include "flux/keeper/relay.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "proto/local_frame.hpp"

namespace resourced::flux::keeper {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// When this many bytes wait to be written to one side, the other is not read, which bounds the memory.
constexpr std::size_t max_unwritten = std::size_t{64} << 20U;
constexpr std::size_t read_size = 65536;
/// A service that has run for at least this long is restarted at once, otherwise after pauses that double.
constexpr milliseconds steady_after{2'000};
constexpr milliseconds first_pause{100};
constexpr milliseconds longest_pause{5'000};
constexpr milliseconds longest_pause_to_attach{1'000};

std::string read_all(int fd) {
  std::string text;
  std::array<char, read_size> part{};
  if (::lseek(fd, 0, SEEK_SET) < 0) throw std::system_error(errno, std::system_category(), "queued frames");
  for (ssize_t size = 0; (size = ::read(fd, part.data(), part.size())) != 0;) {
    if (size < 0) throw std::system_error(errno, std::system_category(), "queued frames");
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

/// A socket that is read and written asynchronously. Reading waits while `may_read` is false.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  struct Callbacks {
    std::function<void(std::string_view)> on_bytes;
    /// Called when the other end has closed the socket, or the socket has failed.
    std::function<void()> on_end;
    /// Called when there may be room again.
    std::function<void()> on_written;
    std::function<bool()> may_read;
    /// Called when the other side is gone, although its end may not have been read.
    std::function<void()> on_write_error = [] {};
  };

  Pipe(Socket socket, Callbacks callbacks) : socket_(std::move(socket)), callbacks_(std::move(callbacks)) {}

  void read() {
    if (is_reading_ || is_over_ || !callbacks_.may_read()) return;
    is_reading_ = true;
    socket_.async_read_some(asio::buffer(part_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              self->is_reading_ = false;
                              if (self->is_over_) return;
                              if (error) {
                                self->is_over_ = true;
                                self->callbacks_.on_end();
                                return;
                              }
                              self->callbacks_.on_bytes(std::string_view(self->part_.data(), size));
                              self->read();
                            });
  }
  /// Writes `bytes`, and leaves the string empty.
  void write(std::string& bytes) {
    waiting_.append(bytes);
    link::clear_buffer(bytes);
    if (!is_writing_) write_next();
  }
  [[nodiscard]] bool is_full() const noexcept { return waiting_.size() + writing_.size() > max_unwritten; }
  [[nodiscard]] bool is_idle() const noexcept { return !is_writing_; }
  /// No callback is called after this.
  void close() {
    is_over_ = true;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void write_next() {
    if (waiting_.empty() || is_over_) return;
    writing_.swap(waiting_);
    is_writing_ = true;
    asio::async_write(socket_, asio::buffer(writing_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        self->is_writing_ = false;
                        link::clear_buffer(self->writing_);
                        if (self->is_over_) return;
                        if (error) return self->callbacks_.on_write_error();
                        self->write_next();
                        self->callbacks_.on_written();
                      });
  }

  Socket socket_;
  Callbacks callbacks_;
  std::array<char, read_size> part_{};
  std::string waiting_;
  std::string writing_;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_over_ = false;
};

class Keeper {
 public:
  explicit Keeper(const Options& options) : options_(options) {
    link::give_back_long_buffers();
    // Ignore signals: those of the terminal are for the broker, which asks the module to stop.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int flags = ::fcntl(options.channel, F_GETFD);
    if (flags < 0 || ::fcntl(options.channel, F_SETFD, flags | FD_CLOEXEC) < 0) {
      throw std::system_error(errno, std::system_category(), "channel");
    }
    broker_ = std::make_shared<Pipe>(
        Socket(loop_, asio::local::stream_protocol(), options.channel),
        Pipe::Callbacks{[this](std::string_view bytes) { from_broker(bytes); }, [this] { finish(1); },
                        [this] { broker_written(); },
                        [this] { return !broker_->is_full() && (!service_ || !service_->is_full()); },
                        [this] { finish(1); }});
  }

  int run() {
    if (!options_.attach.empty()) {
      attacher_.emplace(loop_, options_.attach, options_.welcome,
                        Attacher::Callbacks{[this](Socket link) { attached(std::move(link)); },
                                            [this](const std::string& why) { cannot_attach(why); }});
    }
    start_service();
    if (options_.queued >= 0) {
      from_broker(read_all(options_.queued));
      ::close(options_.queued);
    }
    broker_->read();
    loop_.run();
    return exit_status_;
  }

 private:
  void from_broker(std::string_view bytes) {
    const State before = relay_.state();
    from_broker_.feed(bytes);
    while (relay_next_frame()) continue;
    if (before != State::stopping && relay_.state() == State::stopping) limit_stop();
    flush();
  }

  bool relay_next_frame() {
    try {
      const auto frame = from_broker_.next();
      if (frame && from_broker_.is_cut()) {
        relay_.refuse_cut(*frame);
      } else if (frame) {
        relay_.from_broker(*frame);
      }
      return frame.has_value();
    } catch (const Error& error) {
      if (from_broker_.is_broken()) throw;
      // Drop the message and continue: the next frame can still be read, and the instance would go down with
      // this process.
      log_error(fmt::format("ignored a message of the broker: {}", error.what()));
      return true;
    }
  }

  void limit_stop() {
    timer_.expires_after(options_.stop_within);
    timer_.async_wait([this](const error_code& error) {
      if (error || relay_.state() != State::stopping) return;
      log_error(fmt::format("{} has not ended {} ms after resource.shutdown and is {}", name(),
                            options_.stop_within.count(), attacher_ ? "abandoned" : "killed"));
      if (child_) child_->kill();
      // Do not wait for the exit of the service: a process in a system call that never returns has none.
      service_ended();
    });
  }

  void from_service(std::string_view bytes) {
    if (is_broken_) return;
    try {
      from_service_.feed(bytes);
      while (const auto message = from_service_.next()) relay_.from_service(*message);
    } catch (const Error& error) {
      // The rest of its bytes cannot be read. The next service starts with new ones.
      is_broken_ = true;
      log_error(fmt::format("{}: {}", name(), error.what()));
      if (child_) child_->kill();
      if (attacher_) return service_ended();
    }
    flush();
  }

  void flush() {
    if (service_) service_->write(relay_.for_service());
    broker_->write(relay_.for_broker());
    if (relay_.state() == State::left && broker_->is_idle()) finish(0);
  }

  void broker_written() {
    if (relay_.state() == State::left && broker_->is_idle()) {
      finish(0);
    } else {
      broker_->read();
      if (service_) service_->read();
    }
  }

  void start_service() {
    if (attacher_) return attacher_->attach(relay_.next_generation(), relay_.state() == State::starting);
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return cannot_start(std::system_error(errno, std::system_category(), "socketpair"));
    const os::Descriptor theirs(ends[1]);
    Socket link(loop_, asio::local::stream_protocol(), ends[0]);
    try {
      child_.emplace(loop_, os::start(program(theirs.get())), [this](int status) {
        child_.reset();
        exit_of_child_ = status;
        if (link_is_over_) service_ended();
      });
    } catch (const Error& error) {
      return cannot_start(error);
    }
    relay_.service_started();
    serve(std::move(link));
  }

  void serve(Socket link) {
    started_at_ = Clock::now();
    from_service_ = link::LinkReader();
    is_broken_ = false;
    service_ = std::make_shared<Pipe>(
        std::move(link),
        Pipe::Callbacks{[this](std::string_view bytes) { from_service(bytes); }, [this] { link_ended(); },
                        [this] { broker_->read(); }, [this] { return !broker_->is_full(); }});
    service_->read();
    flush();
  }

  void attached(Socket link) {
    relay_.service_started();
    serve(std::move(link));
  }

  void cannot_attach(const std::string& why) {
    const bool is_late = relay_.state() == State::starting && Clock::now() - begun_ >= options_.attach_within;
    if (is_late || why != last_failure_) {
      last_failure_ = why;
      log_error(fmt::format("cannot attach to {}: {}{}", name(), why,
                            is_late ? "" : "; the next attempts are not logged unless they fail otherwise"));
    }
    if (is_late) relay_.service_ended(false);
    flush();
    pause_ = std::clamp(2 * pause_, first_pause, longest_pause_to_attach);
    if (!is_late) start_later(pause_);
  }

  /// Handles a failed start: the resources may be available later, but the first service is not waited for.
  void cannot_start(const std::exception& error) {
    log_error(fmt::format("cannot start the service: {}", error.what()));
    if (relay_.state() == State::starting) relay_.service_ended(false);
    flush();
    start_later(longest_pause);
  }

  void start_later(milliseconds pause) {
    timer_.expires_after(pause);
    timer_.async_wait([this](const error_code& error) {
      const bool is_due =
          relay_.state() == State::running || (attacher_ && relay_.state() == State::starting);
      if (!error && is_due) start_service();
    });
  }

  [[nodiscard]] os::Program program(int link) const {
    os::Program program{.arguments = options_.service};
    const auto pass = [&](const char* name, int fd) {
      program.variables.push_back(fmt::format("{}=fd://{}", name, program.descriptors.size()));
      program.descriptors.push_back(fd);
    };
    pass("RESOURCED_FLUX_LINK", link);
    if (options_.welcome >= 0) {
      ::lseek(options_.welcome, 0, SEEK_SET);
      pass("RESOURCED_FLUX_WELCOME", options_.welcome);
    }
    program.variables.push_back(fmt::format("RESOURCED_FLUX_GENERATION={}", relay_.next_generation()));
    return program;
  }

  // Handles the end of the link: all messages of the service were received. It may still write to its store,
  // so wait for its exit.
  void link_ended() {
    link_is_over_ = true;
    if (!child_) return service_ended();
    if (relay_.state() == State::running) limit_exit();
  }

  void limit_exit() {
    timer_.expires_after(options_.stop_within);
    timer_.async_wait([this](const error_code& error) {
      if (error || !link_is_over_ || !child_) return;
      log_error(fmt::format("{} has closed its link, has not ended {} ms later and is killed", name(),
                            options_.stop_within.count()));
      flush();
      child_->kill();
    });
  }

  void service_ended() {
    link_is_over_ = false;
    service_->close();
    service_.reset();
    const State before = relay_.state();
    if (before == State::running || before == State::starting) {
      if (attacher_) {
        log_error(fmt::format("the connection to {} is lost", name()));
      } else {
        log_error(fmt::format("{} has ended ({}){}", name(), end_of(exit_of_child_),
                              before == State::running ? " and is started again" : ""));
      }
    }
    last_failure_.clear();
    // The daemon may be restarted while the module is loaded.
    const bool comes_again = attacher_ && Clock::now() - begun_ < options_.attach_within;
    relay_.service_ended(comes_again);
    flush();
    broker_->read();
    if (relay_.state() != before || (before != State::running && before != State::starting)) return;
    const auto lived = Clock::now() - started_at_;
    pause_ = lived >= steady_after ? milliseconds(0) : std::clamp(2 * pause_, first_pause, longest_pause);
    start_later(pause_);
  }

  [[nodiscard]] std::string name() const {
    return attacher_ ? "resourced at " + options_.attach : options_.service.front();
  }

  void log_error(std::string_view text) {
    proto::append_local_frame(relay_.for_broker(),
                              link::make_log_line(link::Severity::error, options_.rank, ::getpid(),
                                                  std::chrono::system_clock::now(), text));
  }

  void finish(int exit_status) {
    exit_status_ = exit_status;
    loop_.stop();
  }

  const Options& options_;
  asio::io_context loop_;
  asio::steady_timer timer_{loop_};
  Relay relay_;
  link::FrameReader from_broker_;
  link::LinkReader from_service_;
  std::shared_ptr<Pipe> broker_;
  /// The link to the service; empty while none runs.
  std::shared_ptr<Pipe> service_;
  /// The service, until it has ended; empty if the keeper attaches.
  std::optional<os::Process> child_;
  int exit_of_child_ = 0;
  bool link_is_over_ = false;
  /// Whether the service has sent bytes that are no messages.
  bool is_broken_ = false;
  /// The attacher, if the service is not a process of the keeper.
  std::optional<Attacher> attacher_;
  /// The last reason for a failure of the attacher.
  std::string last_failure_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point started_at_;
  milliseconds pause_{0};
  int exit_status_ = 0;
};

}  // namespace

int run(const Options& options) { return Keeper(options).run(); }

}  // namespace resourced::flux::keeper
