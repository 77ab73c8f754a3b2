# Compiles headers of libraries that most sources read once. Every source still includes what it uses: the preset tsan
# builds without precompiled headers.

# resourced_precompile(NAME [OPTIONS OPTION...] [LIBRARIES LIB...] HEADERS HEADER...): for use with
# target_precompile_headers(REUSE_FROM).
function(resourced_precompile name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;LIBRARIES;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cpp" CONTENT "")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE resourced_flags ${ARG_LIBRARIES})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()
