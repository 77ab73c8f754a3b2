#include "daemon/service/metrics_text.hpp"

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace resourced::daemon::service {

void MetricsText::append_value(std::string& out, std::string_view value) {
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') out.push_back('\\');
    if (letter == '\n') {
      out.append("\\n");
    } else {
      out.push_back(letter);
    }
  }
}

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::sample(double value, Labels labels) { line("", labels, value); }

void MetricsText::sample(const Histogram& histogram) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    sum += histogram.counts()[i];
    line("_bucket", {{"le", fmt::format("{}", histogram.bounds()[i])}}, static_cast<double>(sum));
  }
  sum += histogram.counts().back();
  line("_bucket", {{"le", "+Inf"}}, static_cast<double>(sum));
  line("_sum", {}, histogram.sum());
  line("_count", {}, static_cast<double>(sum));
}

void MetricsText::line(std::string_view suffix, Labels labels, double value) {
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [key, text] : labels) {
    text_.push_back(before);
    text_.append(key).append("=\"");
    append_value(text_, text);
    text_.push_back('"');
    before = ',';
  }
  if (labels.size() > 0) text_.push_back('}');
  constexpr double exact = 9007199254740992;  // integers up to 2^53
  const bool is_integer =
      value >= 0 && value < exact && value == static_cast<double>(static_cast<std::uint64_t>(value));
  if (is_integer) {
    text_ += fmt::format(" {}\n", static_cast<std::uint64_t>(value));
  } else {
    text_ += fmt::format(" {}\n", value);
  }
}

}  // namespace resourced::daemon::service
