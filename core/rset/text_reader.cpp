// Reads the text of an R. Most of the text is entries of R_lite: each is read into the same buffers, without
// a JSON value.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "core/rset/document_reader.hpp"
#include "core/rset/entry_collector.hpp"
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
  explicit TextReader(std::string_view text) : reader_(text, max_levels, json_text::JsonManners::lenient) {}

  ResourceSet read() {
    json document;
    if (!read_document(document) || !reader_.at_end()) fail(std::move(reader_).fault());
    return DocumentReader::read(std::move(document), entries_);
  }

 private:
  struct Text {
    std::string text;
    bool given = false;
    [[nodiscard]] const std::string* get() const { return given ? &text : nullptr; }
  };

  [[noreturn]] static void fail(const JsonFault& fault) {
    if (fault.kind == JsonFault::Kind::depth)
      fail_at("", fmt::format("R is nested deeper than {} levels", max_levels));
    fail_at("", fmt::format("R is not JSON: the text is wrong at byte {}", fault.at + 1));
  }

  bool read_document(json& out) {
    if (reader_.next() != '{') return reader_.value(out);
    out = json::object();
    return reader_.object([&](const std::string& key) {
      json& member = out[key];
      if (key == "scheduling") return reader_.opaque_value(member);
      return key == "execution" ? read_execution(member) : reader_.value(member);
    });
  }

  bool read_execution(json& out) {
    if (reader_.next() != '{') return reader_.value(out);
    out = json::object();
    return reader_.object([&](const std::string& key) {
      json& member = out[key];
      return key == "R_lite" ? read_entries(member) : reader_.value(member);
    });
  }

  bool read_entries(json& out) {
    if (reader_.next() != '[') return reader_.value(out);
    out = json::array();
    entries_ = EntryCollector();
    return reader_.array([this] { return read_entry(); });
  }

  bool read_entry() {
    if (reader_.next() != '{') return refuse("", "is not an object");
    rank_.given = core_.given = gpu_.given = has_children_ = false;
    extra_ = nullptr;
    const bool is_json = reader_.object([this](const std::string& key) {
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
    return reader_.object([this](const std::string& key) {
      if (key == "core") return read_text("children.core", core_);
      if (key == "gpu") return read_text("children.gpu", gpu_);
      return reader_.value(extra_["children"][key]);
    });
  }

  bool read_text(std::string_view place, Text& out) {
    if (reader_.next() != '"') return refuse(place, "is not a string");
    out.given = true;
    return reader_.string(out.text);
  }

  // Refuses a value: throws Error if it is of the wrong kind, or returns false if it is a scalar that is not
  // JSON.
  bool refuse(std::string_view place, std::string_view reason) {
    const char first = reader_.next();
    json scalar;
    if (first != '[' && first != '{' && !reader_.value(scalar)) return false;
    entries_.fail(place, reason);
  }

  void add_entry() {
    EntryCollector::Entry entry;
    entry.rank = rank_.get();
    entry.has_children = has_children_;
    entry.core = core_.get();
    entry.gpu = gpu_.get();
    if (!extra_.empty()) entry.extra = std::make_shared<const json>(std::move(extra_));
    entries_.add(entry);
  }

  JsonReader reader_;
  EntryCollector entries_;
  // Buffers for the entry that is being read.
  Text rank_;
  Text core_;
  Text gpu_;
  bool has_children_ = false;
  json extra_;
};

}  // namespace

ResourceSet read_text(std::string_view text) {
  if (text.size() > ResourceSet::max_text)
    fail_at("", fmt::format("R is longer than {} bytes", ResourceSet::max_text));
  return TextReader(text).read();
}

}  // namespace resourced::rset
