// The files of daemon/http/web, which are built into the program (cmake/Embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace resourced::daemon::http {

struct WebFile {
  std::string_view name;  ///< without a folder: `index.html`
  std::string_view content_type;
  std::string_view entity_tag;  ///< quoted, of the content (RFC 9110, 8.8.3)
  std::string_view content;
};

[[nodiscard]] std::span<const WebFile> web_files() noexcept;

}  // namespace resourced::daemon::http
