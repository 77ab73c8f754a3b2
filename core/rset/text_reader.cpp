// Reads the text of an R. Most of the text is entries of R_lite: each is read into the same buffers, without
// a JSON value.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "core/rset/document_reader.hpp"
#include "core/rset/json_check.hpp"

namespace resourced::rset {

using json_text::JsonFault;
using json_text::JsonReader;
using nlohmann::json;

namespace {

// Nesting that a text may have before its keys are looked at, each of which has a limit of its own: unknown
// keys of `children` stand deepest.
constexpr std::size_t max_levels = ResourceSet::max_depth + 3;

// Reads the text of an R. The functions that read return false for text that is not JSON, and throw Error for
// JSON that is not a valid entry.
class TextReader {
 public:
  explicit TextReader(JsonReader& reader) : reader_(reader) {}

  bool read() { return read_member(Members::document); }
  // Checks the members that read() has taken, and makes a set of them.
  ResourceSet take() { return DocumentReader::read(std::move(members_)); }

 private:
  struct Text {
    std::string text;
    bool given = false;
    [[nodiscard]] const std::string* get() const { return given ? &text : nullptr; }
  };

  // Reads the value of a known key. Objects and arrays whose parts are read one by one have an empty value.
  bool read_member(Members::Key key) {
    static const json object = json::object();
    static const json array = json::array();
    const char first = reader_.next();
    if (key == Members::document && first == '{') {
      members_.values[key] = &object;
      return read_members(Members::version, Members::r_lite, members_.carried.document);
    }
    if (key == Members::execution && first == '{') {
      members_.values[key] = &object;
      // If a document has `execution` twice, the later value counts: drop the members of the earlier one.
      std::fill(members_.values.begin() + Members::r_lite, members_.values.end(), nullptr);
      members_.carried.execution.clear();
      return read_members(Members::r_lite, Members::unknown, members_.carried.execution);
    }
    if (key == Members::r_lite && first == '[') {
      members_.values[key] = &array;
      if (!members_.entries.empty()) members_.entries = EntryCollector();
      return reader_.array([this] { return read_entry(); });
    }
    if (key == Members::nodelist && first == '[') {
      members_.values[key] = &array;
      members_.hosts = HostCollector();
      return reader_.array([this] { return read_host(); });
    }
    json& value = values_[key];
    members_.values[key] = &value;
    return key == Members::scheduling ? reader_.opaque_value(value) : reader_.value(value);
  }

  // Reads an object whose known keys are those from `first` up to `end`.
  bool read_members(Members::Key first, Members::Key end, json::object_t& unknown) {
    return reader_.object([&](std::string_view name) {
      const Members::Key key = Members::find(name, first, end);
      return key == Members::unknown ? reader_.value(unknown[std::string(name)]) : read_member(key);
    });
  }

  bool read_entry() {
    if (reader_.next() != '{') return refuse("", "is not an object");
    rank_.given = core_.given = gpu_.given = has_children_ = false;
    extra_ = nullptr;
    const bool is_json = reader_.object([this](std::string_view key) {
      if (key == "rank") return read_text("rank", rank_);
      if (key == "children") return read_children();
      return reader_.value(extra_["entry"][key]);
    });
    if (is_json) add_entry();
    return is_json;
  }

  // If an entry has `children` twice, the later value counts: drop the members of the earlier one.
  bool read_children() {
    if (reader_.next() != '{') return refuse("children", "is not an object");
    has_children_ = true;
    core_.given = gpu_.given = false;
    if (extra_.is_object()) extra_.erase("children");
    return reader_.object([this](std::string_view key) {
      if (key == "core") return read_text("children.core", core_);
      if (key == "gpu") return read_text("children.gpu", gpu_);
      return reader_.value(extra_["children"][key]);
    });
  }

  bool read_host() {
    if (reader_.next() != '"') {
      if (!is_json()) return false;
      members_.hosts.fail("is not a string");
    }
    if (!reader_.string(host_)) return false;
    members_.hosts.add(host_);
    return true;
  }

  bool read_text(std::string_view place, Text& out) {
    if (reader_.next() != '"') return refuse(place, "is not a string");
    out.given = true;
    return reader_.string(out.text);
  }

  // Refuses a value: throws Error if it is of the wrong kind, or returns false if it is a scalar that is not
  // JSON.
  bool refuse(std::string_view place, std::string_view reason) {
    if (!is_json()) return false;
    members_.entries.fail(place, reason);
  }

  // Whether a value of the wrong kind is JSON, as far as a scalar can show it.
  bool is_json() {
    const char first = reader_.next();
    json scalar;
    return first == '[' || first == '{' || reader_.value(scalar);
  }

  void add_entry() {
    EntryCollector::Entry entry;
    entry.rank = rank_.get();
    entry.has_children = has_children_;
    entry.core = core_.get();
    entry.gpu = gpu_.get();
    if (!extra_.empty()) entry.extra = std::make_shared<const json>(std::move(extra_));
    members_.entries.add(entry);
  }

  JsonReader& reader_;
  Members members_;
  // The values of members that are not read part by part.
  std::array<json, Members::unknown> values_;
  // Buffers for the entry that is being read.
  std::string host_;
  Text rank_;
  Text core_;
  Text gpu_;
  bool has_children_ = false;
  json extra_;
};

}  // namespace

bool ResourceSet::read(JsonReader& reader, ResourceSet& out) {
  TextReader parts(reader);
  if (!parts.read()) return false;
  out = parts.take();
  return true;
}

ResourceSet ResourceSet::parse(std::string_view text) {
  if (text.size() > max_text) fail_at("", fmt::format("R is longer than {} bytes", max_text));
  JsonReader reader(text, max_levels, json_text::JsonManners::lenient);
  TextReader parts(reader);
  if (parts.read() && reader.at_end()) return parts.take();
  const JsonFault fault = std::move(reader).fault();
  if (fault.kind == JsonFault::Kind::depth)
    fail_at("", fmt::format("R is nested deeper than {} levels", max_levels));
  fail_at("", fmt::format("R is not JSON: the text is wrong at byte {}", fault.at + 1));
}

}  // namespace resourced::rset
