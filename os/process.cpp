#include "os/process.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/error.hpp"

namespace resourced::os {

namespace {

constexpr int not_found = 127;

/// Returns pointers to the texts, which must outlive them, and a null pointer, as exec(3) takes them.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(std::vector<std::string> variables) {
  const std::vector<std::string> set = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_set = false;
    for (const std::string& other : set) is_set = is_set || other.starts_with(name);
    if (!is_set) variables.emplace_back(text);
  }
  return variables;
}

// The functions down to become() run between fork and exec, where only system calls are allowed.

void write_text(int fd, const char* text) {
  for (std::size_t left = std::strlen(text); left > 0;) {
    const ssize_t count = ::write(fd, text, left);
    if (count < 0 && errno != EINTR) return;
    if (count < 0) continue;
    text += count;
    left -= static_cast<std::size_t>(count);
  }
}

void write_record(int fd, const char* key, int number) {
  std::array<char, 32> line{};
  const std::size_t size = std::strlen(key);
  std::memcpy(line.data(), key, size);
  *std::to_chars(line.data() + size, line.data() + line.size() - 2, number).ptr = '\n';
  write_text(fd, line.data());
  ::fdatasync(fd);
}

/// Data of the child, made before the fork. The last two descriptors are for the record and an exec error.
struct Child {
  const char* file;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<int> descriptors;
  bool has_record;
};

[[noreturn]] void execute(const Child& child) {
  const int failure = static_cast<int>(child.descriptors.size()) - 1;
  ::fcntl(failure - 1, F_SETFD, FD_CLOEXEC);
  ::fcntl(failure, F_SETFD, FD_CLOEXEC);
  ::execvpe(child.file, child.arguments.data(), child.environment.data());
  const int number = errno;
  if (child.has_record) {
    for (const char* part : {child.file, ": ", ::strerrordesc_np(number), "\n"})
      write_text(STDERR_FILENO, part);
  } else {
    (void)!::write(failure, &number, sizeof number);
  }
  ::_exit(not_found);
}

[[noreturn]] void become(const Child& child) {
  const int failure = static_cast<int>(child.descriptors.size()) - 1;
  const int record = failure - 1;
  ::setsid();
  for (int number = 0; number <= failure; ++number)
    ::dup2(child.descriptors[static_cast<std::size_t>(number)], number);
  ::close_range(static_cast<unsigned>(failure + 1), ~0U, 0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!child.has_record) execute(child);
  ::close(failure);
  write_record(record, "pid ", ::getpid());
  const pid_t program = ::fork();
  if (program == 0) execute(child);
  int status = 0;
  while (::waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
  if (program > 0 && WIFEXITED(status)) {
    write_record(record, "exit ", WEXITSTATUS(status));
  } else if (program > 0) {
    write_record(record, "signal ", WTERMSIG(status));
  }
  ::_exit(0);
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

pid_t start(const Program& program) {
  const std::string& name = program.file.empty() ? program.arguments.front() : program.file;
  const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing.get() < 0) fail("/dev/null", errno);
  Pipe failure = make_pipe();
  std::vector<int> numbers = program.descriptors;
  numbers.push_back(program.record);
  numbers.push_back(failure.write.get());
  // Copy all descriptors above the program's numbers, so that dup2() replaces none before it is copied.
  std::vector<Descriptor> copies;
  const std::vector<std::string> environment = environment_with(program.variables);
  Child child{
      name.c_str(), pointers_to(program.arguments), pointers_to(environment), {}, program.record >= 0};
  for (const int number : numbers) {
    const int source = ::fcntl(number, F_GETFD) < 0 ? nothing.get() : number;
    copies.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, static_cast<int>(numbers.size())));
    if (copies.back().get() < 0) fail(name, errno);
    child.descriptors.push_back(copies.back().get());
  }
  const pid_t id = ::fork();
  if (id < 0) fail(name, errno);
  if (id == 0) become(child);
  copies.clear();
  ::close(failure.write.release());
  int number = 0;
  ssize_t size = 0;
  while ((size = ::read(failure.read.get(), &number, sizeof number)) < 0 && errno == EINTR) continue;
  if (size != sizeof number) return id;
  ::waitpid(id, nullptr, 0);
  fail(name, number);
}

Process::Process(boost::asio::io_context& loop, pid_t id, std::function<void(int)> ended)
    : id_(id),
      ended_(std::move(ended)),
      // A direct system call, as the header for pidfd_open() of glibc 2.36 lacks C linkage.
      descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, id, 0U))) {
  if (descriptor_.get() < 0) fail("pidfd_open", errno);
  watch_.emplace(loop, descriptor_.get(), [this] {
    watch_.reset();
    int status = 0;
    (void)::waitpid(std::exchange(id_, -1), &status, WNOHANG);
    // ended() may destroy this object.
    const auto call = std::exchange(ended_, nullptr);
    call(status);
  });
}

void Process::kill() const noexcept {
  if (id_ > 0) ::kill(-id_, SIGKILL);
}

}  // namespace resourced::os
