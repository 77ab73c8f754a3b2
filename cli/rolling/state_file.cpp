#include "cli/rolling/state_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "proto/uri.hpp"

namespace resourced::cli::rolling {

using nlohmann::json;

namespace {

/// Returns the one canonical form of a URI that names a path.
std::string canonical_place(const std::string& uri) {
  for (const std::string_view scheme : {"ipc://", "local://"}) {
    if (!uri.starts_with(scheme)) continue;
    std::error_code failure;
    const auto path = std::filesystem::weakly_canonical(uri.substr(scheme.size()), failure);
    if (!failure) return std::string(scheme) + path.string();
  }
  return uri;
}

/// Returns the URIs of a cluster in one order, as two runs of one work must not have two states.
std::string canonical_uri(const std::string& uri) {
  std::set<std::string> places;
  for (const std::string& place : proto::split_uris(uri)) places.insert(canonical_place(place));
  return fmt::format("{}", fmt::join(places, ","));
}

/// Returns ranks, or hosts and selectors, in one order and each once.
std::string canonical_targets(const std::string& targets) {
  try {
    return text::IdSet::parse(targets).encode();
  } catch (const Error&) {
    // The targets are hosts.
  }
  try {
    text::Hostlist hosts = text::Hostlist::parse(targets);
    hosts.unique();
    return hosts.encode();
  } catch (const Error&) {
    return targets;
  }
}

/// Returns a text, or bytes if it is not UTF-8: arguments may name files in any encoding.
json word_of(const std::string& word) {
  if (!json_text::find_invalid_utf8(word)) return word;
  return json::binary(std::vector<std::uint8_t>(word.begin(), word.end()));
}

/// Returns the parts of the work that identify it and its file.
json name_of(const Work& work) {
  json command = json::array();
  for (const std::string& word : work.command) command.push_back(word_of(word));
  return {{"version", 3},
          {"uri", word_of(canonical_uri(work.uri))},
          {"targets", word_of(canonical_targets(work.targets))},
          {"command", std::move(command)}};
}

std::string header_of(const Work& work) {
  json header = name_of(work);
  header["reboot"] = work.reboot;
  return header.dump();
}

/// Throws Error EINVAL unless the first line of a state, which a crash may have cut off, is that of this
/// work.
void check_header(const std::string& path, const std::string& text, Work work) {
  const std::size_t end = text.find('\n');
  const std::string first = end == std::string::npos ? text : text.substr(0, end + 1);
  const auto is_of_work = [&] { return (header_of(work) + '\n').starts_with(first); };
  if (is_of_work()) return;
  work.reboot = !work.reboot;
  throw Error(
      EINVAL,
      is_of_work()
          ? fmt::format(
                "{}: the state of a run {} --reboot; run it so to go on, or name another file with --state",
                path, work.reboot ? "with" : "without")
          : fmt::format(
                "{}: the state of another daemon, of other targets or of another command; name another "
                "file with --state",
                path));
}

json line_of(const Node& node) {
  json line{{"host", node.host}, {"step", step_name(node.step)}};
  if (!node.reason.empty()) line["reason"] = node.reason;
  if (!node.why.empty()) line["why"] = node.why;
  if (node.drained != WallTime{}) line["drained"] = to_number(node.drained);
  if (node.since != WallTime{}) line["since"] = to_number(node.since);
  if (!node.boot.empty()) line["boot"] = node.boot;
  if (node.gives_way) line["gives_way"] = true;
  return line;
}

json object_of(std::string_view text) {
  constexpr std::size_t depth = 2;
  auto read = json_text::read_json(text, depth, json_text::JsonManners::lenient);
  auto* object = std::get_if<json>(&read);
  if (object == nullptr || !object->is_object()) throw Error(EINVAL, "not a JSON object");
  return std::move(*object);
}

Node node_of(const json& line) {
  Node node;
  node.host = line.at("host").get<std::string>();
  node.step = parse_step(line.at("step").get<std::string>());
  node.reason = line.value("reason", "");
  node.why = line.value("why", "");
  node.drained = wall_time(line.value("drained", 0.0));
  node.since = wall_time(line.value("since", 0.0));
  node.boot = line.value("boot", "");
  node.gives_way = line.value("gives_way", false);
  return node;
}

std::string state_home() {
  const char* home = std::getenv("XDG_STATE_HOME");
  if (home != nullptr && *home == '/') return home;
  const char* user = std::getenv("HOME");
  if (user == nullptr || *user == '\0')
    throw Error(ENOENT, "no directory for the state: set HOME or XDG_STATE_HOME, or give --state FILE");
  return std::string(user) + "/.local/state";
}

os::Descriptor open_state(const std::string& path) {
  std::error_code failure;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failure);
  if (failure) os::fail(parent.string(), failure.value());
  return os::open_file(path, O_RDWR | O_CREAT | O_APPEND, 0600);
}

}  // namespace

std::string default_state_path(const Work& work) {
  const std::uint64_t number = Hash().add(name_of(work).dump()).value();
  return fmt::format("{}/resourced/rolling/{:016x}", state_home(), number);
}

StateFile::StateFile(std::string path, const Work& work, WallTime now)
    : path_(std::move(path)), file_(open_state(path_)), begun_(now) {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(EBUSY, fmt::format("{}: another run does this work", path_));
  std::string text = os::read_file(path_, std::numeric_limits<std::size_t>::max());
  // Check this first: a file that is not of this work must not change.
  check_header(path_, text, work);
  // A crash may have cut off the last line: its step has not begun.
  text.resize(text.rfind('\n') + 1);
  if (::ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0) os::fail(path_, errno);
  if (text.empty()) append(header_of(work));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    try {
      const json object = object_of(line);
      if (object.contains("begun")) {
        begun_ = wall_time(object.at("begun").get<double>());
        has_nodes_ = true;
      } else {
        const Node node = node_of(object);
        nodes_.insert_or_assign(node.host, node);
      }
    } catch (const std::exception& error) {
      throw Error(EINVAL, fmt::format("{}:{}: {}", path_, number, error.what()));
    }
  }
  // Without the list of the nodes, which a crash has cut off, the work is new.
  if (!has_nodes_) nodes_.clear();
}

StateFile::~StateFile() {
  if (!has_nodes_) ::unlink(path_.c_str());
}

void StateFile::begin(const std::vector<Node>& nodes) {
  if (has_nodes_) return;
  has_nodes_ = true;
  std::string lines;
  for (const Node& node : nodes) lines += line_of(node).dump() + '\n';
  append(lines + json{{"begun", to_number(begun_)}}.dump());
}

void StateFile::record(const Node& node) {
  has_nodes_ = true;
  append(line_of(node).dump());
}

void StateFile::append(const std::string& line) {
  os::write_all(file_, line + '\n', path_);
  if (::fdatasync(file_.get()) != 0) os::fail(path_, errno);
}

void StateFile::remove() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) os::fail(path_, errno);
}

}  // namespace resourced::cli::rolling
