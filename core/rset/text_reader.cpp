
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/document_reader.hpp"
#include "core/rset/dom_builder.hpp"
#include "core/rset/entry_collector.hpp"
#include "core/rset/json_check.hpp"

namespace resourced::rset {

using nlohmann::json;

namespace {

/// Takes one entry of R_lite after another. Known members go straight into buffers that are reused; anything
/// else becomes a JSON value.
class EntryEvents {
 public:
  explicit EntryEvents(EntryCollector& entries) : entries_(entries) {}

  /// Objects and arrays that are open inside R_lite.
  [[nodiscard]] std::size_t depth() const noexcept {
    return (place_ == Place::list ? 0U : place_ == Place::entry ? 1U : 2U) + rest_.depth();
  }

  void value(json&& value) {
    if (rest_.depth() > 0) {
      rest_.value(std::move(value));
      return;
    }
    require_other("is not a string");
    extra_slot() = std::move(value);
  }

  void string(std::string& text) {
    if (rest_.depth() > 0) {
      rest_.value(std::move(text));
    } else if (Text* field = known_text()) {
      field->text.swap(text);
      field->given = true;
    } else {
      value(std::move(text));
    }
  }

  void open_object() {
    if (rest_.depth() > 0) {
      rest_.open(json::object());
    } else if (place_ == Place::list) {
      place_ = Place::entry;
      begin();
    } else if (place_ == Place::entry && key_ == "children") {
      place_ = Place::children;
      has_children_ = true;
    } else {
      open_other(json::object());
    }
  }

  void open_array() {
    if (rest_.depth() > 0) {
      rest_.open(json::array());
    } else {
      open_other(json::array());
    }
  }

  void close() {
    if (rest_.depth() > 0) {
      rest_.close();
    } else if (place_ == Place::children) {
      place_ = Place::entry;
    } else {
      place_ = Place::list;
      end();
    }
  }

  void key(std::string& key) {
    if (rest_.depth() > 0) {
      rest_.key(key);
    } else {
      key_.swap(key);
    }
  }

 private:
  enum class Place { list, entry, children };
  struct Text {
    std::string text;
    bool given = false;
    [[nodiscard]] const std::string* get() const { return given ? &text : nullptr; }
  };

  Text* known_text() {
    if (place_ == Place::entry) return key_ == "rank" ? &rank_ : nullptr;
    if (place_ == Place::children) return key_ == "core" ? &core_ : key_ == "gpu" ? &gpu_ : nullptr;
    return nullptr;
  }

  void require_other(std::string_view otherwise) {
    if (place_ == Place::list) entries_.fail("", "is not an object");
    if (place_ == Place::entry && key_ == "children") entries_.fail("children", "is not an object");
    if (known_text() != nullptr)
      entries_.fail((place_ == Place::children ? "children." : "") + key_, otherwise);
  }

  void open_other(json&& empty) {
    require_other("is not a string");
    rest_.start(extra_slot());
    rest_.open(std::move(empty));
  }

  json& extra_slot() { return extra_[place_ == Place::children ? "children" : "entry"][key_]; }

  void begin() {
    rank_.given = core_.given = gpu_.given = has_children_ = false;
    extra_ = nullptr;
  }

  void end() {
    EntryCollector::Entry entry;
    entry.rank = rank_.get();
    entry.has_children = has_children_;
    entry.core = core_.get();
    entry.gpu = gpu_.get();
    if (!extra_.is_null()) entry.extra = std::make_shared<const json>(std::move(extra_));
    entries_.add(entry);
  }

  EntryCollector& entries_;
  Place place_ = Place::list;
  std::string key_;
  Text rank_;
  Text core_;
  Text gpu_;
  bool has_children_ = false;
  json extra_;
  DomBuilder rest_;
};

/// The events of nlohmann's parser (its SAX interface).
class Events {
 public:
  Events() { document_.start(root_); }

  bool null() { return value(nullptr); }
  bool boolean(bool value) { return this->value(value); }
  bool number_integer(json::number_integer_t value) { return this->value(value); }
  bool number_unsigned(json::number_unsigned_t value) { return this->value(value); }
  bool number_float(json::number_float_t value, const std::string&) { return this->value(value); }
  bool binary(json::binary_t&) { return false; }
  bool string(std::string& text) {
    if (!entry_events_) return value(std::move(text));
    entry_events_->string(text);
    return true;
  }

  bool start_object(std::size_t) {
    check_depth();
    if (entry_events_) {
      entry_events_->open_object();
    } else {
      document_.open(json::object());
    }
    return true;
  }
  bool start_array(std::size_t) {
    check_depth();
    if (entry_events_) {
      entry_events_->open_array();
      return true;
    }
    const bool is_r_lite = at_r_lite_ && document_.depth() == 2 && document_.innermost()->is_object();
    document_.open(json::array());
    if (is_r_lite) {
      entries_ = EntryCollector();
      entry_events_ = std::make_unique<EntryEvents>(entries_);
    }
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    if (entry_events_) {
      entry_events_->key(key);
      return true;
    }
    if (document_.depth() == 1) in_execution_ = key == "execution";
    if (document_.depth() == 2) at_r_lite_ = in_execution_ && key == "R_lite";
    document_.key(key);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    fail_at("", fmt::format("R is not JSON: the text is wrong at byte {}", position));
  }

  ResourceSet finish() { return DocumentReader::read(std::move(root_), entries_); }

 private:
  bool value(json&& value) {
    if (entry_events_) {
      entry_events_->value(std::move(value));
    } else {
      document_.value(std::move(value));
    }
    return true;
  }

  bool close() {
    if (entry_events_ && entry_events_->depth() > 0) {
      entry_events_->close();
      return true;
    }
    entry_events_.reset();
    document_.close();
    return true;
  }

  void check_depth() const {
    const std::size_t depth = document_.depth() + (entry_events_ ? entry_events_->depth() : 0);
    if (depth >= ResourceSet::max_depth)
      fail_at("", fmt::format("R is nested deeper than {} levels", ResourceSet::max_depth));
  }

  json root_;
  DomBuilder document_;
  bool in_execution_ = false;
  bool at_r_lite_ = false;
  EntryCollector entries_;
  std::unique_ptr<EntryEvents> entry_events_;
};

}  // namespace

ResourceSet read_text(std::string_view text) {
  if (text.size() > ResourceSet::max_text)
    fail_at("", fmt::format("R is longer than {} bytes", ResourceSet::max_text));
  Events events;
  json::sax_parse(text, &events);
  return events.finish();
}

}  // namespace resourced::rset
