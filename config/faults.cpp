#include "config/faults.hpp"

#include <cerrno>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace resourced::config {

namespace {

constexpr std::size_t most_lines = 20;

}  // namespace

Faults::Faults(std::vector<std::string> lines)
    : Error(EINVAL, fmt::format("{}", fmt::join(lines, "; "))), lines_(std::move(lines)) {}

void FaultList::add(const std::string& line, int errnum) {
  errnum_ = errnum;
  if (lines_.size() < most_lines) return lines_.push_back(line);
  left_out_ = true;
}

void FaultList::check() const {
  if (lines_.empty()) return;
  if (lines_.size() == 1) throw Error(errnum_, lines_.front());
  auto lines = lines_;
  if (left_out_) lines.emplace_back("there are more errors");
  throw Faults(std::move(lines));
}

}  // namespace resourced::config
