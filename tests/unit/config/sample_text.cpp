#include "sample_text.hpp"

#include <algorithm>
#include <span>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "config/setting.hpp"

namespace resourced::test {

namespace {

using config::Change;
using config::Section;
using config::Setting;

constexpr std::size_t width = 118;

constexpr std::string_view introduction[] = {
    "Configuration of resourced. The daemon uses this file if there is no /etc/resourced. To run your own "
    "cluster, copy it to /etc/resourced/resourced.toml and describe your hosts. The *.toml files of a "
    "directory are read in name order and their tables are merged; later values replace earlier ones.",
    R"(Lines that begin with "#" and no blank are settings that are turned off. They show the default of a )"
    "setting, if it has one. A duration is text (2ms, 0.1s, 5m, 1.2h, 5d, inf) or a number of seconds. "
    "Relative paths start at this file's directory. A setting that changes live takes effect when the "
    R"(configuration is reloaded, any other when the daemon starts. "resourced --check" prints a summary.)",
    "This file may hold a site's whole Flux configuration: its tables archive, bootstrap, exec, "
    "fake-resources, "
    "heartbeat, ingest, job-list, job-manager, kvs, policy, sched-*, sdexec, systemd and tbon, the keys "
    "allow-guest-user, allow-root-owner, private-mode and roles of [access], and all keys of [queues] "
    "except hosts are ignored, with a log line each. Any other unknown table or key is an error.",
};

/// Wraps a text into comment lines, each with a newline.
std::string comment(const std::string& text) {
  std::string lines;
  std::string line = "#";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > width) {
      lines += line + '\n';
      line = "#";
    }
    line += ' ' + word;
  }
  return lines + line + '\n';
}

bool is_live(const Setting& setting) {
  return setting.change == Change::live || setting.change == Change::parent;
}

bool is_table(const Setting& setting) {
  return setting.value.type == config::Type::table || setting.value.type == config::Type::entries;
}

std::string sentences(std::string_view help, bool live) {
  return std::string(help) + (live ? " Changes live." : "");
}

std::string settings_text(std::span<const Setting> rows, bool all_live) {
  std::string text;
  for (const Setting& row : rows) {
    if (is_table(row)) continue;
    text += '\n' + comment(sentences(row.help, is_live(row) && !all_live));
    const std::string value =
        row.example.empty() ? row.value.tell(config::Config()).dump() : std::string(row.example);
    text += fmt::format("#{} = {}\n", row.key, value);
  }
  return text;
}

std::string keys_text(std::span<const Setting> rows, bool all_live) {
  std::string text;
  for (const Setting& row : rows)
    text += comment(fmt::format("{}: {}", row.key, sentences(row.help, is_live(row) && !all_live)));
  return text;
}

std::string section_text(const Section& section) {
  const std::span<const Setting> rows = config::settings_of(section.name);
  const bool all_live = std::ranges::all_of(rows, is_live);
  const bool shows_keys = !section.sample.empty();
  if (!shows_keys && std::ranges::all_of(rows, is_table)) return "";
  const std::string head = '\n' + comment(sentences(section.help, all_live));
  if (shows_keys) return head + keys_text(rows, all_live) + std::string(section.sample);
  return head + fmt::format("[{}]\n", section.name) + settings_text(rows, all_live);
}

}  // namespace

std::string sample_text() {
  std::string text;
  for (const std::string_view paragraph : introduction)
    text += (text.empty() ? "" : "#\n") + comment(std::string(paragraph));
  for (const Section& section : config::sections()) text += section_text(section);
  return text;
}

}  // namespace resourced::test
