// Writes the text exposition format of Prometheus, version 0.0.4.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/service/histogram.hpp"

namespace resourced::daemon::service {

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// Begins a metric, whose samples follow. `type` is `counter`, `gauge` or `histogram`.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(double value, Labels labels = {});
  void sample(const Histogram& histogram);
  /// Adds a metric with one sample.
  void one(std::string_view name, std::string_view type, std::string_view help, double value) {
    begin(name, type, help);
    sample(value);
  }
  /// Appends the value of a label, with escapes.
  static void append_value(std::string& out, std::string_view value);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, double value);

  std::string name_;
  std::string text_;
};

}  // namespace resourced::daemon::service
