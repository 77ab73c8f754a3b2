# Compiles the non-template functions of Boost.Asio and Boost.Beast once, instead of in each source that includes them.
# All code that includes one of them must link the target here: their headers have two forms, which do not mix.

# resourced_compiled_once(NAME HEADER DEFINITION LIB...)
function(resourced_compiled_once name header definition)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cpp" CONTENT "#include <${header}>\n")
  add_library(${name} STATIC "${PROJECT_BINARY_DIR}/${name}.cpp")
  target_compile_definitions(${name} PUBLIC ${definition})
  target_link_libraries(${name} PUBLIC ${ARGN})
  # Programs keep only the functions of the object that they call (resourced_program).
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
endfunction()

resourced_compiled_once(resourced_asio boost/asio/impl/src.hpp BOOST_ASIO_SEPARATE_COMPILATION
  Boost::boost Threads::Threads)
# TLS is a target of its own, so that programs without TLS do not link OpenSSL.
resourced_compiled_once(resourced_asio_tls boost/asio/ssl/impl/src.hpp BOOST_ASIO_SEPARATE_COMPILATION
  resourced_asio OpenSSL::SSL)
resourced_compiled_once(resourced_beast boost/beast/src.hpp BOOST_BEAST_SEPARATE_COMPILATION resourced_asio)
# daemon/http, the only room with TLS and HTTP, is COLD.
target_compile_options(resourced_asio_tls PRIVATE ${cold_options})
target_compile_options(resourced_beast PRIVATE ${cold_options})
