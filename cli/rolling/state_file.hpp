// The state of rolling work on disk: a line of JSON for each step of each node, written before the step
// begins, so that a later run continues where this one ended, whenever that was.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/rolling/plan.hpp"
#include "core/time.hpp"
#include "os/file.hpp"

namespace resourced::cli::rolling {

/// The work that a state belongs to. Targets and paths in URIs have several spellings: `n[0-1]` is `n1,n0`.
struct Work {
  /// URI of the daemon: two clusters may have nodes of the same names.
  std::string uri;
  std::string targets;
  std::vector<std::string> command;
  /// Nodes must have rebooted after the command.
  bool reboot = false;
};

/// Returns the path of this work's file: `$XDG_STATE_HOME/resourced/rolling/NUMBER` (by default below
/// ~/.local/state), where the number follows from the work. It is the same with and without reboot, so that a
/// run of the other kind finds the state, and is refused.
[[nodiscard]] std::string default_state_path(const Work& work);

class StateFile {
 public:
  /// Opens the file, or creates it with its directories, and reads it. Throws Error EBUSY if another run has
  /// it open, EINVAL if it is of other work, and Error naming the file if it cannot be read or written. The
  /// work begins `now` if the file is new.
  StateFile(std::string path, const Work& work, WallTime now);

  /// Removes a file without nodes.
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  StateFile(StateFile&&) = delete;
  StateFile& operator=(StateFile&&) = delete;

  /// Writes all nodes of new work, so that later runs work on the same; they are on disk when this returns.
  void begin(const std::vector<Node>& nodes);
  /// Returns when the work began.
  [[nodiscard]] WallTime begun() const noexcept { return begun_; }

  /// Returns the nodes as the last run has left them, by host; none if the work is new.
  [[nodiscard]] const std::map<std::string, Node, std::less<>>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Writes a node, which is on disk when this returns.
  void record(const Node& node);
  /// Removes the file of complete work.
  void remove();

 private:
  void append(const std::string& line);

  std::string path_;
  os::Descriptor file_;
  std::map<std::string, Node, std::less<>> nodes_;
  WallTime begun_;
  bool has_nodes_ = false;
};

}  // namespace resourced::cli::rolling
