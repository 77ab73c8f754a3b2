#include "cli/commands/host_groups.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/user_file.hpp"
#include "cli/views/text_width.hpp"
#include "config/document.hpp"
#include "core/error.hpp"
#include "os/process.hpp"

namespace resourced::cli::commands {

namespace {

struct Printed {
  std::string output;
  std::string errors;
};

/// Returns what a program prints until it closes both pipes. Reads both at once, because it waits as soon as
/// one of them is full. Throws Error EFBIG for more than a list of all hosts may have, and ETIMEDOUT.
Printed read_both(int output, int errors, std::chrono::milliseconds patience) {
  constexpr std::size_t most_bytes = 64U << 20U;
  const auto end = std::chrono::steady_clock::now() + patience;
  Printed printed;
  std::array<pollfd, 2> waiting{{{output, POLLIN, 0}, {errors, POLLIN, 0}}};
  std::array<char, 1U << 16U> block{};
  // poll(2) passes over negative descriptors.
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) throw Error(ETIMEDOUT, fmt::format("nodeset: no end within {} ms", patience.count()));
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left)) <= 0) continue;
    for (pollfd& one : waiting) {
      if (one.fd < 0 || one.revents == 0) continue;
      const ssize_t count = ::read(one.fd, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error(errno, "nodeset: its output cannot be read");
      if (count == 0) {
        one.fd = -1;
        continue;
      }
      std::string& text = &one == waiting.data() ? printed.output : printed.errors;
      text.append(block.data(), static_cast<std::size_t>(count));
      if (text.size() > most_bytes) throw Error(EFBIG, "nodeset: the output is too long");
    }
  }
  return printed;
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto end = text.rfind('\n');
  return end == std::string_view::npos ? text : text.substr(end + 1);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

/// Returns why a program failed: the last line of its errors, or else how it ended.
std::string failure_of(std::string_view errors, int status) {
  constexpr std::size_t most_columns = 200;
  const auto line = last_line(errors);
  if (!line.empty()) return views::fit(line, most_columns);
  return WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                           : fmt::format("ended by signal {}", WTERMSIG(status));
}

/// Runs nodeset(1), which prints the hosts of a group, separated by blanks, on one line.
std::string ask_nodeset(const std::string& group, std::chrono::milliseconds patience) {
  os::Pipe output = os::make_pipe();
  os::Pipe errors = os::make_pipe();
  const pid_t child = os::start({.arguments = {"nodeset", "--expand", group},
                                 .descriptors = {-1, output.write.get(), errors.write.get()}});
  ::close(output.write.release());
  ::close(errors.write.release());
  Printed printed;
  try {
    printed = read_both(output.read.get(), errors.read.get(), patience);
  } catch (const Error&) {
    // The program leads its process group, in which are the programs that it asks for groups.
    ::kill(-child, SIGKILL);
    (void)wait_for(child);
    throw;
  }
  if (const int status = wait_for(child); status != 0)
    throw Error(EINVAL, fmt::format("nodeset: {}", failure_of(printed.errors, status)));
  return std::move(printed.output);
}

}  // namespace

text::Hostlist hosts_of_group(const std::string& name, std::chrono::milliseconds patience) {
  const std::string group = "@" + name;
  if (const auto file = read_user_file()) {
    const auto* groups = member(file->root.get(), "groups");
    if (groups != nullptr && groups->table() == nullptr)
      throw Error(EINVAL, fmt::format("{}:{}: groups: expected a table", file->path, groups->line));
    if (const auto* hosts = member(groups, name)) {
      try {
        const std::string list = text_of(hosts);
        if (list.empty()) throw Error(EINVAL, "expected a text with hosts");
        return text::Hostlist::parse(list);
      } catch (const Error& error) {
        throw Error(error.errnum(),
                    fmt::format("{}:{}: groups.{}: {}", file->path, hosts->line, name, error.what()));
      }
    }
  }
  std::string printed;
  try {
    printed = ask_nodeset(group, patience);
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("unknown group {}: it is not in [groups] of resourcectl.toml, and {}",
                                    group, error.what()));
  }
  text::Hostlist hosts;
  constexpr std::string_view blanks = " \n";
  std::string_view rest = printed;
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
    if (rest.empty()) break;
    const auto host = rest.substr(0, rest.find_first_of(blanks));
    try {
      hosts.append(host);
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("group {}: nodeset: {}", group, error.what()));
    }
    rest.remove_prefix(host.size());
  }
  if (hosts.empty())
    throw Error(
        EINVAL,
        fmt::format("unknown group {}: neither [groups] of resourcectl.toml nor nodeset has it", group));
  return hosts;
}

}  // namespace resourced::cli::commands
