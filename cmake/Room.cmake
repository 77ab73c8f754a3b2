# A room is one folder of the source tree and one library target. Its headers are reached through a directory
# of links that holds this folder's headers and no others, so that a file can include what its room USES and
# nothing else: an arrow that docs/architecture.md does not have fails to compile.

# resourced_room(TARGET [PRECOMPILED NAME] [USES ROOM...] [PUBLIC_LIBRARIES LIB...] [LIBRARIES LIB...])
function(resourced_room target)
  cmake_parse_arguments(ROOM "" "PRECOMPILED" "USES;PUBLIC_LIBRARIES;LIBRARIES" ${ARGN})
  file(RELATIVE_PATH place "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  file(GLOB headers CONFIGURE_DEPENDS "*.hpp")

  set(door "${PROJECT_BINARY_DIR}/rooms/${target}")
  file(REMOVE_RECURSE "${door}")
  file(MAKE_DIRECTORY "${door}/${place}")
  foreach(header IN LISTS headers)
    get_filename_component(name "${header}" NAME)
    file(CREATE_LINK "${header}" "${door}/${place}/${name}" SYMBOLIC)
  endforeach()

  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE resourced_flags ${ROOM_LIBRARIES})
    if(ROOM_PRECOMPILED)
      target_precompile_headers(${target} REUSE_FROM ${ROOM_PRECOMPILED})
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${door}>")
  target_link_libraries(${target} ${scope} ${ROOM_USES} ${ROOM_PUBLIC_LIBRARIES})
endfunction()

# resourced_program(TARGET ROOM...): the main.cpp of this folder.
function(resourced_program target)
  add_executable(${target} main.cpp)
  target_link_libraries(${target} PRIVATE resourced_flags ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  install(TARGETS ${target} RUNTIME)
endfunction()
