#include "config/document.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "config/faults.hpp"
#include "config/table_reader.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::config {
namespace {

constexpr std::size_t max_text = std::size_t{16} << 20;
constexpr std::size_t max_files = 1024;

/// Whether a file with another ending than .toml is probably meant as configuration, unlike a key file or an
/// R file in the same directory.
bool seems_configuration(std::string_view name) {
  if (name.starts_with('.')) return false;
  return name.find(".toml") != std::string_view::npos || name.ends_with(".conf") || name.ends_with(".cfg") ||
         name.ends_with(".ini");
}

std::string member_key(const std::string& table, const std::string& member) {
  return table.empty() ? KeyPath{nullptr, member}.text() : table + '.' + KeyPath{nullptr, member}.text();
}

/// Returns the files of a configuration path.
std::vector<std::string> list_files(const std::string& path, std::vector<std::string>& ignored) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::error_code& error) {
    throw Error(error.value(), fmt::format("{}: {}", path, error.message()));
  };
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};

  std::vector<std::string> files;
  fs::directory_iterator entry(path, error);
  if (error) fail(error);
  while (entry != fs::directory_iterator()) {
    const std::string name = entry->path().filename();
    // Ignore hidden files, an editor's among them, as the shell's *.toml does.
    if (name.ends_with(".toml") && !name.starts_with('.')) {
      files.push_back(entry->path());
    } else if (seems_configuration(name) && ignored.size() < max_files) {
      ignored.push_back(
          fmt::format("{}: ignored, as its name does not end in .toml", entry->path().string()));
    }
    if (files.size() > max_files)
      throw Error(EFBIG, fmt::format("{}: holds more than {} *.toml files", path, max_files));
    entry.increment(error);
    if (error) fail(error);
  }
  if (files.empty()) throw Error(ENOENT, fmt::format("{}: holds no *.toml file", path));
  std::sort(files.begin(), files.end());
  std::sort(ignored.begin(), ignored.end());
  return files;
}

/// The first step of a key, `name` or `[index]`.
struct Step {
  std::string_view name;
  std::size_t index = 0;

  static Step take(std::string_view& key) {
    Step step;
    if (key.starts_with('[')) {
      const std::size_t close = std::min(key.find(']'), key.size());
      std::from_chars(key.data() + 1, key.data() + close, step.index);
      key.remove_prefix(std::min(close + 1, key.size()));
    } else {
      step.name = key.substr(0, key.find_first_of(".["));
      key.remove_prefix(step.name.size());
    }
    if (key.starts_with('.')) key.remove_prefix(1);
    return step;
  }

  [[nodiscard]] const Node* from(const Node& node) const {
    if (!name.empty()) return node.table() ? find_member(*node.table(), name) : nullptr;
    return node.array() && index < node.array()->size() ? &(*node.array())[index] : nullptr;
  }
};

}  // namespace

std::shared_ptr<const Document> Document::read(const std::string& path) {
  auto document = std::make_shared<Document>();
  document->files_ = list_files(path, document->ignored_);
  document->root_.value = Table{};
  std::size_t size = 0;
  for (std::uint32_t file = 0; file < document->files_.size(); ++file) {
    const std::string& name = document->files_[file];
    const std::string text = os::read_file(name, max_text);
    size += text.size();
    if (size > max_text)
      throw Error(EFBIG, fmt::format("{}: holds more than {} bytes of TOML", path, max_text));
    document->merge(document->root_, parse_toml(text, name, file), "");
  }
  return document;
}

const Node* Document::nearest(std::string_view key) const {
  const Node* node = &root_;
  while (!key.empty()) {
    const Node* next = Step::take(key).from(*node);
    if (!next) break;
    node = next;
  }
  return node;
}

std::string Document::where(const Node& node) const {
  return node.line == 0 ? std::string() : fmt::format("{}:{}", files_[node.file], node.line);
}

std::string Document::resolve(const Node& node, const std::string& path) const {
  return (std::filesystem::path(files_[node.file]).parent_path() / path).lexically_normal();
}

std::vector<std::string> Document::places() const {
  std::vector<std::string> lines;
  const auto add = [&](const auto& again, const Table& table, const std::string& key) -> void {
    for (const Member& member : table) {
      const std::string name = member_key(key, member.key);
      if (const Table* inner = member.node.table()) {
        again(again, *inner, name);
      } else {
        lines.push_back(fmt::format("{}: {}", where(member.node), name));
      }
    }
  };
  add(add, *root_.table(), "");
  return lines;
}

const Node* find_member(const Table& table, std::string_view key) noexcept {
  const auto found =
      std::lower_bound(table.begin(), table.end(), key,
                       [](const Member& member, std::string_view k) { return member.key < k; });
  return found != table.end() && found->key == key ? &found->node : nullptr;
}

void Document::merge(Node& base, Node&& over, const std::string& key) {
  auto* into = std::get_if<Table>(&base.value);
  auto* from = std::get_if<Table>(&over.value);
  if (!into || !from) {
    ignored_.push_back(place_text(
        where(base), key, fmt::format("ignored: {} sets it, too, and the later file counts", where(over))));
    base = std::move(over);
    return;
  }
  for (Member& member : *from) {
    const auto at = std::lower_bound(into->begin(), into->end(), member.key,
                                     [](const Member& m, const std::string& k) { return m.key < k; });
    if (at != into->end() && at->key == member.key) {
      const std::string name = member_key(key, member.key);
      merge(at->node, std::move(member.node), name);
    } else {
      into->insert(at, std::move(member));
    }
  }
}

}  // namespace resourced::config
