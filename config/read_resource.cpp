// The [resource] table, as Flux sites write it.

#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

class EntryReader {
 public:
  ResourceEntry read(const Document& document, const Node& node, const KeyPath& path) {
    const TableReader entry(document, node, path, {"hosts", "cores", "gpus", "properties"});
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
    const std::string defect = property_name_defect(name);
    if (!defect.empty()) entry.fail("properties", fmt::format("{}: {}", resourced::quoted(name), defect));
    valid_.insert(name);
  }

  std::unordered_set<std::string> valid_;
};

std::vector<ResourceEntry> read_entries(const TableReader& resource) {
  std::vector<ResourceEntry> entries;
  const Array* nodes = resource.array("config");
  if (!nodes) return entries;
  if (nodes->empty()) resource.fail("config", "is empty");
  EntryReader reader;
  entries.reserve(nodes->size());
  for (std::size_t i = 0; i < nodes->size(); ++i)
    entries.push_back(
        reader.read(resource.document(), (*nodes)[i], KeyPath{&resource.key_path(), "config", i}));
  return entries;
}

VerifyMode read_mode(const TableReader& verify, std::string_view key, VerifyMode otherwise) {
  const std::string* text = verify.string(key);
  if (!text) return otherwise;
  try {
    return parse_verify_mode(*text);
  } catch (const Error& error) {
    verify.fail(key, error.what());
  }
}

VerifyOptions read_verify(const TableReader& resource) {
  const Node* node = resource.find("verify");
  if (!node) return {};
  if (!node->table()) {
    if (!std::holds_alternative<bool>(node->value)) resource.fail("verify", "must be true, false or a table");
    return VerifyOptions::all(resource.boolean("verify", true) ? VerifyMode::strict : VerifyMode::ignore);
  }
  const KeyPath path{&resource.key_path(), "verify"};
  const TableReader verify(resource.document(), *node, path, {"default", "core", "gpu", "hostname"});
  const VerifyMode other = read_mode(verify, "default", VerifyMode::strict);
  return {read_mode(verify, "core", other), read_mode(verify, "gpu", other),
          read_mode(verify, "hostname", other)};
}

}  // namespace

Resource read_resource(const Document& document) {
  const Node* node = find_member(*document.root().table(), "resource");
  Resource result;
  if (!node) return result;
  const KeyPath path{nullptr, "resource"};
  const TableReader resource(
      document, *node, path,
      {"path", "config", "scheduling", "exclude", "norestrict", "noverify", "verify", "no-update-watch",
       "rediscover", "journal-max", "history", "parent-uri", "parent-key-file", "parent-settle", "rerank",
       "size", "discovery-timeout", "shrink-lost"});
  result.entries = read_entries(resource);
  result.path = resource.path("path");
  if (!result.entries.empty()) result.path.clear();
  result.scheduling = resource.path("scheduling");
  if (const std::string* exclude = resource.string("exclude")) result.exclude = *exclude;
  result.norestrict = resource.boolean("norestrict", result.norestrict);
  result.noverify = resource.boolean("noverify", result.noverify);
  result.verify = read_verify(resource);
  if (result.noverify) result.verify = VerifyOptions::all(VerifyMode::ignore);
  result.no_update_watch = resource.boolean("no-update-watch", result.no_update_watch);
  result.rediscover = resource.boolean("rediscover", result.rediscover);
  if (const auto events = resource.integer("journal-max", 1, 1000000000))
    result.journal_max = static_cast<std::size_t>(*events);
  result.parent_uri = resource.filled_string("parent-uri");
  result.parent_key_file = resource.path("parent-key-file");
  result.parent_settle = resource.duration("parent-settle").value_or(result.parent_settle);
  result.rerank = resource.hostlist("rerank");
  if (resource.has("rerank") && result.rerank.empty()) resource.fail("rerank", "names no host");
  if (const auto size = resource.integer("size", 1, std::numeric_limits<std::uint32_t>::max()))
    result.size = static_cast<std::uint32_t>(*size);
  result.discovery_timeout = resource.duration("discovery-timeout").value_or(result.discovery_timeout);
  result.shrink_lost = resource.boolean("shrink-lost", result.shrink_lost);
  return result;
}

}  // namespace resourced::config
