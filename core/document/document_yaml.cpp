#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "core/document/document.hpp"
#include "core/document/document_builder.hpp"
#include "core/error.hpp"
#include "core/json/json_path.hpp"
#include "core/text/quote.hpp"

namespace resourced::document {
namespace {

constexpr std::string_view core_tag = "tag:yaml.org,2002:";

// Returns the part of a tag of YAML's own types after their common prefix; empty for any other tag.
std::string_view core_type(std::string_view tag) {
  return tag.starts_with(core_tag) ? tag.substr(core_tag.size()) : std::string_view();
}

bool is_core_sequence(std::string_view type) { return type == "seq" || type == "omap" || type == "pairs"; }
bool is_core_map(std::string_view type) { return type == "map" || type == "set"; }

// Builds a value from the events of the parser instead of its tree, so that aliases are expanded within a
// bound, and depth and duplicates are refused where they occur. The library fixes the names of the functions.
class YamlEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_) fail(mark, "there is more than one document");
    seen_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.wants_key()) fail(mark, "a key is missing or null");
    keep(mark, anchor, nullptr);
    builder_.add(nullptr);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) fail(mark, "an alias stands inside of what it is an alias of");
    const Anchored& anchored = found->second;
    if (builder_.wants_key()) {
      if (!anchored.value.is_string()) fail(mark, "a key must be a string");
      builder_.key(anchored.value.get<std::string>());
      return;
    }
    if (builder_.depth() + anchored.size.levels > max_document_depth)
      fail(mark, fmt::format("the document is nested more than {} levels deep", max_document_depth));
    spend(mark, anchored.size.weight);
    builder_.add(anchored.value);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool plain = tag == "?";
    if (builder_.wants_key()) {
      if (anchor != YAML::NullAnchor) keep(mark, anchor, text);
      if (plain && text == "<<") {
        builder_.merge_key();
      } else {
        builder_.key(text);
      }
      return;
    }
    nlohmann::json value = plain ? resolve(text) : tagged(mark, tag, text);
    keep(mark, anchor, value);
    builder_.add(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    const std::string_view type = core_type(tag);
    begin_collection(mark, tag, anchor, type.empty() || is_core_sequence(type));
    builder_.start_array();
  }
  void OnSequenceEnd() override { end_collection(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    const std::string_view type = core_type(tag);
    begin_collection(mark, tag, anchor, type.empty() || is_core_map(type));
    builder_.start_object();
  }
  void OnMapEnd() override { end_collection(); }

  [[nodiscard]] bool seen() const { return seen_; }
  nlohmann::json take() { return builder_.take(); }

 private:
  struct Size {
    // Number of values, and of the bytes of their texts.
    std::size_t weight = 0;
    // Depth of nested arrays and objects.
    std::size_t levels = 0;
  };
  struct Anchored {
    nlohmann::json value;
    Size size;
  };
  struct OpenAnchor {
    YAML::Mark mark;
    YAML::anchor_t anchor;
  };

  [[noreturn]] static void fail(const YAML::Mark& mark, std::string_view reason) {
    throw Error(EINVAL, fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, reason));
  }

  [[noreturn]] static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    fail(mark, fmt::format("the tag {} does not fit its value", text::quoted(tag)));
  }

  static Size size_of(const nlohmann::json& value) {
    Size size{1, 0};
    if (value.is_string()) size.weight += value.get_ref<const std::string&>().size();
    if (!value.is_structured()) return size;
    for (const auto& [key, part] : value.items()) {
      const Size inner = size_of(part);
      size.weight += inner.weight + (value.is_object() ? key.size() : 0);
      size.levels = std::max(size.levels, inner.levels);
    }
    ++size.levels;
    return size;
  }

  // Charges the copy of an alias to the budget, because a short text can ask for many copies.
  void spend(const YAML::Mark& mark, std::size_t weight) {
    if (weight > copies_left_)
      fail(mark, fmt::format("anchors and aliases stand for more than {} bytes", max_document_bytes));
    copies_left_ -= weight;
  }

  void keep(const YAML::Mark& mark, YAML::anchor_t anchor, const nlohmann::json& value) {
    if (anchor == YAML::NullAnchor) return;
    const Size size = size_of(value);
    spend(mark, size.weight);
    anchored_.insert_or_assign(anchor, Anchored{value, size});
  }

  void begin_collection(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, bool fits) {
    if (!fits) refuse_tag(mark, tag);
    if (builder_.wants_key()) fail(mark, "a key must be a string");
    open_anchors_.push_back({mark, anchor});
  }

  void end_collection() {
    const OpenAnchor open = open_anchors_.back();
    open_anchors_.pop_back();
    keep(open.mark, open.anchor, builder_.end());
  }

  // Returns the value of a scalar with a tag. JSON has types only for these tags; the text of any other is
  // kept as it is, as base64 for binary.
  [[nodiscard]] nlohmann::json tagged(const YAML::Mark& mark, const std::string& tag,
                                      const std::string& text) const {
    const std::string_view type = core_type(tag);
    if (is_core_sequence(type) || is_core_map(type)) refuse_tag(mark, tag);
    if (type != "null" && type != "bool" && type != "int" && type != "float") return text;
    nlohmann::json value = resolve(text);
    const bool fits = type == "null"   ? value.is_null()
                      : type == "bool" ? value.is_boolean()
                      : type == "int"  ? value.is_number_integer()
                                       : value.is_number();
    if (!fits) refuse_tag(mark, tag);
    return type == "float" ? nlohmann::json(value.get<double>()) : value;
  }

  [[nodiscard]] nlohmann::json resolve(const std::string& text) const {
    try {
      return resolve_yaml_scalar(text);
    } catch (const Error& error) {
      builder_.fail(error.what());
    }
  }

  DocumentBuilder builder_;
  std::unordered_map<YAML::anchor_t, Anchored> anchored_;
  // An entry for each open collection.
  std::vector<OpenAnchor> open_anchors_;
  std::size_t copies_left_ = max_document_bytes;
  bool seen_ = false;
};

// Refuses control characters: YAML allows none, and the library takes one of them for the end of its input.
void refuse_control_characters(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool blank = byte == '\t' || byte == '\n' || byte == '\r';
    if (byte < 0x20 && !blank) {
      throw Error(EINVAL, fmt::format("the document has a control character at byte {}", at + 1));
    }
  }
}

// Replaces characters that are not printable ASCII: the library's reason may end with a piece of the text.
std::string one_line(std::string reason) {
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return reason;
}

}  // namespace

nlohmann::json read_yaml_document(std::string_view text) {
  refuse_control_characters(text);
  YamlEvents events;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    const std::string reason = one_line(error.msg);
    if (error.mark.is_null()) throw Error(EINVAL, reason);
    throw Error(EINVAL,
                fmt::format("line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1, reason));
  }
  if (!events.seen()) throw Error(EINVAL, "the document is empty");
  return events.take();
}

void DocumentBuilder::start_object() { open(nlohmann::json::object()); }

void DocumentBuilder::start_array() { open(nlohmann::json::array()); }

void DocumentBuilder::key(std::string name) {
  Open& object = open_.back();
  auto& members = object.value->get_ref<nlohmann::json::object_t&>();
  // The hint is the end: most programs write keys in order.
  const std::size_t before = members.size();
  const auto member = members.try_emplace(members.end(), std::move(name));
  object.key = &member->first;
  object.slot = &member->second;
  if (members.size() == before) fail("the key is given twice");
}

void DocumentBuilder::merge_key() {
  open_.back().merges = true;
  key("<<");
}

const nlohmann::json& DocumentBuilder::end() {
  if (open_.back().merges) merge();
  const nlohmann::json& ended = *open_.back().value;
  open_.pop_back();
  return ended;
}

void DocumentBuilder::merge() {
  auto& members = open_.back().value->get_ref<nlohmann::json::object_t&>();
  const auto merged = members.find("<<");
  nlohmann::json from = std::move(merged->second);
  members.erase(merged);
  if (!from.is_array()) from = nlohmann::json::array({std::move(from)});
  for (const nlohmann::json& part : from) {
    if (!part.is_object()) fail("<< needs an object, or a list of objects");
    const auto& more = part.get_ref<const nlohmann::json::object_t&>();
    members.insert(more.begin(), more.end());
  }
}

nlohmann::json* DocumentBuilder::place(nlohmann::json&& value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Open& last = open_.back();
  if (last.value->is_array()) {
    auto& items = last.value->get_ref<nlohmann::json::array_t&>();
    return &items.emplace_back(std::move(value));
  }
  nlohmann::json* slot = std::exchange(last.slot, nullptr);
  *slot = std::move(value);
  return slot;
}

// Opens a container. It is moved only by growth of the array that contains it, which cannot happen while it
// is open.
void DocumentBuilder::open(nlohmann::json&& container) {
  if (open_.size() == max_document_depth) {
    throw Error(EINVAL, fmt::format("the document is nested more than {} levels deep", max_document_depth));
  }
  open_.push_back({place(std::move(container)), nullptr, nullptr});
}

void DocumentBuilder::fail(const std::string& reason) const {
  const std::string where = path();
  throw Error(EINVAL, where.empty() ? reason : fmt::format("{}: {}", where, reason));
}

std::string DocumentBuilder::path() const {
  std::string text;
  for (const Open& open : open_) {
    const bool innermost = &open == &open_.back();
    if (open.value->is_array()) {
      text += fmt::format("[{}]", open.value->size() - (innermost ? 0U : 1U));
    } else if (!innermost || open.slot != nullptr) {
      json_text::append_path_key(text, *open.key);
    }
  }
  return text;
}

}  // namespace resourced::document
