#include "core/text/hostlist.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

constexpr std::size_t max_digits = 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return c > ' ' && c <= '~' && c != '[' && c != ']' && c != ','; }

struct Name {
  std::string_view prefix;
  std::string_view digits;
  std::string_view suffix;
};

Name split(std::string_view host) {
  const std::size_t end = host.find_last_of("0123456789");
  if (end == std::string_view::npos) return {host, {}, {}};
  std::size_t begin = end;
  while (begin > 0 && is_digit(host[begin - 1]) && end - begin + 1 < max_digits) --begin;
  return {host.substr(0, begin), host.substr(begin, end + 1 - begin), host.substr(end + 1)};
}

std::uint64_t value(std::string_view digits) {
  std::uint64_t n = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return n;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <class F>
  void read(F&& add) {
    if (text_.empty()) return;
    while (true) {
      expression(add);
      if (at_ == text_.size()) return;
      ++at_;
    }
  }

 private:
  [[noreturn]] void fail(std::string_view reason, int errnum = EINVAL) const {
    throw Error(errnum,
                fmt::format("{} is not a hostlist: {} at character {}", quoted(text_), reason, at_ + 1));
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin) fail("a number is missing");
    return text_.substr(begin, at_ - begin);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  template <class F>
  void expression(F&& add) {
    const std::string_view prefix = word();
    if (peek() != '[' || at_ == text_.size()) {
      if (at_ < text_.size() && text_[at_] != ',')
        fail(fmt::format("{} is not expected", quoted(text_.substr(at_, 1))));
      if (prefix.empty()) fail("a host name is missing");
      add(std::string(prefix));
      return;
    }
    ++at_;
    std::vector<std::string> numbers;
    std::size_t width = 0;
    while (true) {
      const std::string_view from = number();
      std::string_view to = from;
      if (numbers.empty()) width = from.size() > 1 && from[0] == '0' ? from.size() : 1;
      if (peek() == '-') {
        ++at_;
        to = number();
      }
      if (from.size() > max_digits || to.size() > max_digits) fail("a number is too long");
      const std::uint64_t first = value(from);
      const std::uint64_t last = value(to);
      if (last < first) fail("the range runs backwards");
      if (last - first >= Hostlist::max_expansion - numbers.size())
        fail("the expression has too many hosts", ERANGE);
      for (std::uint64_t n = first; n <= last; ++n) numbers.push_back(fmt::format("{:0{}}", n, width));
      if (peek() == ']') break;
      if (peek() != ',') fail("the bracket is not closed");
      ++at_;
    }
    ++at_;
    const std::string_view suffix = word();
    if (at_ < text_.size() && text_[at_] != ',')
      fail(fmt::format("{} is not expected", quoted(text_.substr(at_, 1))));
    for (const std::string& n : numbers) add(std::string(prefix) + n + std::string(suffix));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Hostlist Hostlist::parse(std::string_view text) {
  Hostlist hosts;
  Reader(text).read([&](std::string host) { hosts.hosts_.push_back(std::move(host)); });
  return hosts;
}

std::string Hostlist::encode() const {
  std::string out;
  for (std::size_t i = 0; i < hosts_.size();) {
    const Name name = split(hosts_[i]);
    if (i > 0) out += ',';
    const bool padded = name.digits.size() > 1 && name.digits[0] == '0';
    const std::size_t width = padded ? name.digits.size() : 1;
    std::size_t end = i + 1;
    std::string list(name.digits);
    std::uint64_t last = name.digits.empty() ? 0 : value(name.digits);
    std::string run_end;
    for (; !name.digits.empty() && end < hosts_.size(); ++end) {
      const Name next = split(hosts_[end]);
      if (next.prefix != name.prefix || next.suffix != name.suffix || next.digits.empty()) break;
      const std::uint64_t n = value(next.digits);
      if (fmt::format("{:0{}}", n, width) != next.digits) break;
      if (n == last + 1) {
        run_end = next.digits;
      } else {
        if (!run_end.empty()) list += '-' + run_end;
        run_end.clear();
        list += ',' + std::string(next.digits);
      }
      last = n;
    }
    if (!run_end.empty()) list += '-' + run_end;
    out += end == i + 1 ? hosts_[i] : fmt::format("{}[{}]{}", name.prefix, list, name.suffix);
    i = end;
  }
  return out;
}

bool Hostlist::empty() const noexcept { return hosts_.empty(); }

std::size_t Hostlist::size() const noexcept { return hosts_.size(); }

std::string Hostlist::at(std::size_t position) const {
  assert(position < hosts_.size());
  return hosts_[position];
}

std::optional<std::size_t> Hostlist::find(std::string_view host) const {
  const auto at = std::find(hosts_.begin(), hosts_.end(), host);
  if (at == hosts_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - hosts_.begin());
}

void Hostlist::append(std::string_view host) {
  if (host.empty() || !std::all_of(host.begin(), host.end(), is_name_char))
    throw Error(EINVAL, fmt::format("{} is not a host name", quoted(host)));
  hosts_.emplace_back(host);
}

void Hostlist::append(const Hostlist& other) {
  const std::vector<std::string> more = other.hosts_;
  hosts_.insert(hosts_.end(), more.begin(), more.end());
}

Hostlist Hostlist::select(const IdSet& positions) const {
  Hostlist chosen;
  positions.for_each([&](IdSet::Id position) { chosen.hosts_.push_back(at(position)); });
  return chosen;
}

void Hostlist::sort() {
  const auto key = [](const std::string& host) {
    const Name name = split(host);
    return std::tuple(name.prefix, value(name.digits), name.digits.size(), name.suffix);
  };
  std::stable_sort(hosts_.begin(), hosts_.end(),
                   [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
}

void Hostlist::unique() {
  sort();
  hosts_.erase(std::unique(hosts_.begin(), hosts_.end()), hosts_.end());
}

bool operator==(const Hostlist& a, const Hostlist& b) { return a.hosts_ == b.hosts_; }

HostIndex::HostIndex(const Hostlist& hosts) {
  std::size_t position = 0;
  hosts.for_each([&](std::string_view host) { positions_.emplace(host, position++); });
}

std::optional<std::size_t> HostIndex::find(std::string_view host) const {
  const auto at = positions_.find(std::string(host));
  if (at == positions_.end()) return std::nullopt;
  return at->second;
}

}  // namespace resourced
