#include "cli/commands/host_groups.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/user_file.hpp"
#include "config/document.hpp"
#include "core/error.hpp"
#include "os/process.hpp"

namespace resourced::cli::commands {

namespace {

/// Returns what the other end of a pipe writes until it is closed. Throws Error EFBIG for more than a list of
/// all hosts may have.
std::string read_pipe(int descriptor) {
  constexpr std::size_t most_bytes = 64U << 20U;
  std::string text;
  std::array<char, 1U << 16U> block{};
  for (;;) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(errno, "nodeset: its output cannot be read");
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > most_bytes) throw Error(EFBIG, "nodeset: the output is too long");
  }
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto end = text.rfind('\n');
  return end == std::string_view::npos ? text : text.substr(end + 1);
}

/// Runs nodeset(1), which prints the hosts of a group, separated by blanks, on one line.
std::string ask_nodeset(const std::string& group) {
  os::Pipe output = os::make_pipe();
  os::Pipe errors = os::make_pipe();
  const pid_t child = os::start({.arguments = {"nodeset", "--expand", group},
                                 .descriptors = {-1, output.write.get(), errors.write.get()}});
  ::close(output.write.release());
  ::close(errors.write.release());
  std::string hosts = read_pipe(output.read.get());
  const std::string error = read_pipe(errors.read.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) throw Error(EINVAL, fmt::format("nodeset: {}", last_line(error)));
  return hosts;
}

}  // namespace

text::Hostlist hosts_of_group(const std::string& name) {
  const std::string group = "@" + name;
  if (const auto file = read_user_file()) {
    if (const auto* hosts = member(member(file->root.get(), "groups"), name)) {
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
    printed = ask_nodeset(group);
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
    hosts.append(host);
    rest.remove_prefix(host.size());
  }
  if (hosts.empty())
    throw Error(
        EINVAL,
        fmt::format("unknown group {}: neither [groups] of resourcectl.toml nor nodeset has it", group));
  return hosts;
}

}  // namespace resourced::cli::commands
