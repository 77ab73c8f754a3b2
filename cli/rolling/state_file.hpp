// The state of rolling work on disk: a line of JSON for each step of each node, written before the step
// begins, so that a later run goes on where this one was, whenever it ends.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/rolling/plan.hpp"
#include "os/file.hpp"

namespace resourced::cli::rolling {

/// What a state is of. Targets and paths in URIs may be spelled in several ways: `n[0-1]` is `n1,n0`.
struct Work {
  /// Of the daemon: two clusters may have nodes of the same names.
  std::string uri;
  std::string targets;
  std::vector<std::string> command;
};

/// The file of this work: `$XDG_STATE_HOME/resourced/rolling/NUMBER` (by default below ~/.local/state), where
/// the number follows from the work.
[[nodiscard]] std::string default_state_path(const Work& work);

class StateFile {
 public:
  /// Opens the file, or creates it with its directories, and reads it. Throws Error EBUSY if another run has
  /// it open, EINVAL if it is of other work, and Error naming the file if it cannot be
  /// read or written.
  StateFile(std::string path, const Work& work);

  /// Removes a file without nodes.
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  StateFile(StateFile&&) = delete;
  StateFile& operator=(StateFile&&) = delete;

  /// The nodes as the last run has left them, by host.
  [[nodiscard]] const std::map<std::string, Node, std::less<>>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Has the node on disk when it returns.
  void record(const Node& node);
  /// The work is complete: removes the file.
  void remove();

 private:
  void read(const std::string& text, const std::string& header);
  void append(const std::string& line);

  std::string path_;
  os::Descriptor file_;
  std::map<std::string, Node, std::less<>> nodes_;
  bool has_nodes_ = false;
};

}  // namespace resourced::cli::rolling
