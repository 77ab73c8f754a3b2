#include "core/rset/short_form.hpp"

#include <fmt/format.h>

namespace resourced::rset {

using text::IdSet;

namespace {

std::string named(std::string_view type, const IdSet& ids) {
  return ids.first() == ids.last() ? fmt::format("{}{}", type, ids.first())
                                   : fmt::format("{}[{}]", type, ids.encode());
}

}  // namespace

std::string short_form(const IdSet& cores, const IdSet& gpus) {
  std::string text;
  if (!cores.empty()) text += named("core", cores);
  if (!gpus.empty()) text += (text.empty() ? "" : ",") + named("gpu", gpus);
  return text;
}

std::string short_form(const std::vector<ResourceGroup>& groups) {
  std::string text;
  for (const ResourceGroup& group : groups) {
    if (!text.empty()) text += ' ';
    text += named("rank", group.ranks) + '/' + short_form(group.cores, group.gpus);
  }
  return text;
}

}  // namespace resourced::rset
