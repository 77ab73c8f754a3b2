// Reads the tables and lists of [resource], as Flux sites write them.

#include <unordered_set>

#include <fmt/format.h>

#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

using rset::VerifyMode;

namespace {

class EntryReader {
 public:
  ResourceEntry read(const TableReader& entry) {
    if (!entry.has("hosts")) entry.fail("hosts", "is missing");
    ResourceEntry result{entry.hostlist("hosts"), entry.idset("cores"), entry.idset("gpus"),
                         entry.strings("properties")};
    if (result.hosts.empty()) entry.fail("hosts", "names no host");
    for (const std::string& name : result.properties) check(entry, name);
    return result;
  }

 private:
  void check(const TableReader& entry, const std::string& name) {
    if (valid_.contains(name)) return;
    const std::string defect = rset::property_name_defect(name);
    if (!defect.empty()) entry.fail("properties", fmt::format("{}: {}", text::quoted(name), defect));
    valid_.insert(name);
  }

  std::unordered_set<std::string> valid_;
};

VerifyMode read_mode(const TableReader& verify, std::string_view key, VerifyMode otherwise) {
  const std::string* text = verify.string(key);
  return text ? verify.checked(key, [&] { return rset::parse_verify_mode(*text); }) : otherwise;
}

}  // namespace

std::vector<ResourceEntry> read_entries(const TableReader& resource, const Setting& setting) {
  const Array& nodes = *resource.array(setting.key);
  if (nodes.empty()) resource.fail(setting.key, "is empty");
  std::vector<ResourceEntry> entries;
  EntryReader reader;
  entries.reserve(nodes.size());
  resource.each_table(setting.key, "resource.config",
                      [&](const TableReader& entry) { entries.push_back(reader.read(entry)); });
  return entries;
}

rset::VerifyOptions read_verify(const TableReader& resource, const Setting& setting) {
  const Node& node = *resource.find(setting.key);
  if (!node.table()) {
    if (!std::holds_alternative<bool>(node.value))
      resource.fail(setting.key, "must be true, false or a table");
    return rset::VerifyOptions::all(std::get<bool>(node.value) ? VerifyMode::strict : VerifyMode::ignore);
  }
  const KeyPath path{&resource.key_path(), setting.key};
  const TableReader verify(resource.document(), node, path, settings_of("resource.verify"));
  const VerifyMode other = read_mode(verify, "default", VerifyMode::strict);
  return {read_mode(verify, "core", other), read_mode(verify, "gpu", other),
          read_mode(verify, "hostname", other)};
}

text::Hostlist read_rerank(const TableReader& resource, const Setting& setting) {
  text::Hostlist hosts = resource.hostlist(setting.key);
  if (hosts.empty()) resource.fail(setting.key, "names no host");
  return hosts;
}

}  // namespace resourced::config
