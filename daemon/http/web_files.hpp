// The files of daemon/http/web, which cmake/Embed.cmake builds into the program.
#pragma once

#include <span>
#include <string_view>

namespace resourced::daemon::http {

struct WebFile {
  std::string_view name;  ///< name without a folder: `index.html`
  std::string_view content_type;
  std::string_view entity_tag;  ///< quoted entity tag of the content (RFC 9110, 8.8.3)
  std::string_view content;
};

[[nodiscard]] std::span<const WebFile> web_files() noexcept;

}  // namespace resourced::daemon::http
