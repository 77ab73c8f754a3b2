# cmake -DOUTPUT=FILE.cpp "-DFILES=PATH;PATH..." -P Embed.cmake: writes the files as a C++ source, the table that
# daemon/http/web_files.hpp declares. The entity tag of a file is a hash of its content.
set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(type_json "application/json")
set(type_txt "text/plain; charset=utf-8")
set(type_webmanifest "application/manifest+json")

set(arrays "")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  get_filename_component(suffix "${path}" LAST_EXT)
  string(REGEX REPLACE "^\\." "" suffix "${suffix}")
  if(NOT DEFINED type_${suffix})
    message(FATAL_ERROR "${path}: no content type is known for this suffix; add it to cmake/Embed.cmake")
  endif()
  file(READ "${path}" hex HEX)
  file(SHA256 "${path}" hash)
  string(SUBSTRING "${hash}" 0 32 hash)
  file(SIZE "${path}" size)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  # Add one byte, because an array may not be empty.
  string(APPEND arrays "const unsigned char file_${number}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", \"${type_${suffix}}\", \"\\\"${hash}\\\"\", {reinterpret_cast<const char*>(file_${number}), ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "#include <array>

#include \"daemon/http/web_files.hpp\"

namespace resourced::daemon::http {
namespace {

${arrays}
const auto table = std::to_array<WebFile>({
${rows}});

}  // namespace

std::span<const WebFile> web_files() noexcept { return table; }

}  // namespace resourced::daemon::http
")
