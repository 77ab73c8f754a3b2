#include <algorithm>
#include <sstream>

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

// Builds from the parser's events instead of its tree, so that nothing is ever expanded and depth and
// duplicates are refused where they occur. The names of the functions are the library's.
class YamlEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_) fail(mark, "there is more than one document");
    seen_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (builder_.wants_key()) fail(mark, "a key is missing or null");
    builder_.add(nullptr);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { fail(mark, "aliases are not allowed"); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    const bool plain = tag == "?";
    if (!plain && tag != "!" && tag != fmt::format("{}str", core_tag)) refuse_tag(mark, tag);
    if (builder_.wants_key()) {
      builder_.key(value);
    } else {
      builder_.add(plain ? resolve(value) : nlohmann::json(value));
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin_collection(mark, tag, anchor, "seq");
    builder_.start_array();
  }
  void OnSequenceEnd() override { builder_.end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin_collection(mark, tag, anchor, "map");
    builder_.start_object();
  }
  void OnMapEnd() override { builder_.end(); }

  [[nodiscard]] bool seen() const { return seen_; }
  nlohmann::json take() { return builder_.take(); }

 private:
  [[noreturn]] static void fail(const YAML::Mark& mark, std::string_view reason) {
    throw Error(EINVAL, fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, reason));
  }

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) fail(mark, "anchors are not allowed");
  }

  [[noreturn]] static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    fail(mark, fmt::format("the tag {} is not allowed", text::quoted(tag)));
  }

  void begin_collection(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                        std::string_view kind) const {
    refuse_anchor(mark, anchor);
    const bool usual = tag.empty() || tag == "?" || tag == "!" || tag == fmt::format("{}{}", core_tag, kind);
    if (!usual) refuse_tag(mark, tag);
    if (builder_.wants_key()) fail(mark, "a key must be a string");
  }

  [[nodiscard]] nlohmann::json resolve(const std::string& value) const {
    try {
      return resolve_yaml_scalar(value);
    } catch (const Error& error) {
      builder_.fail(error.what());
    }
  }

  DocumentBuilder builder_;
  bool seen_ = false;
};

// The library takes one of the control characters for the end of its input, and YAML allows none of them.
void refuse_control_characters(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool blank = byte == '\t' || byte == '\n' || byte == '\r';
    if (byte < 0x20 && !blank) {
      throw Error(EINVAL, fmt::format("the document has a control character at byte {}", at + 1));
    }
  }
}

// The library's reason may end with a piece of the text.
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
  // Programs mostly write keys in order.
  const std::size_t before = members.size();
  const auto member = members.try_emplace(members.end(), std::move(name));
  object.key = &member->first;
  object.slot = &member->second;
  if (members.size() == before) fail("the key is given twice");
}

void DocumentBuilder::end() { open_.pop_back(); }

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

// A container is only moved by the growth of the array it stands in, and that cannot happen while it is open.
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
