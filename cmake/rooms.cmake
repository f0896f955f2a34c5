# One static library per room, in link order. A room with no .cpp yet is an INTERFACE library, so
# that everything configures from the first commit and adding a file touches no list.
function(weft_room room)
  cmake_parse_arguments(ROOM "" "" "NEEDS;LIBS" ${ARGN})
  # A room's folders hold what only one target needs.
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/weft/${room}/*.cpp"
                                      "${CMAKE_SOURCE_DIR}/weft/${room}/*/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")  # so that tests can link the rest
  list(TRANSFORM ROOM_NEEDS PREPEND weft_)
  if(sources)
    add_library(weft_${room} STATIC ${sources})
    target_link_libraries(weft_${room} PUBLIC weft_options ${ROOM_NEEDS} PRIVATE ${ROOM_LIBS})
  else()
    add_library(weft_${room} INTERFACE)
    target_link_libraries(weft_${room} INTERFACE weft_options ${ROOM_NEEDS})
  endif()
endfunction()

# What nearly every file of a target includes, and of the others that share its flags.
set(precompiled_base <algorithm> <functional> <memory> <mutex> <span> <string> <unordered_map> <vector>
                     "${CMAKE_SOURCE_DIR}/weft/base/format.h")
set(precompiled_graph ${precompiled_base} "${CMAKE_SOURCE_DIR}/weft/graph/graph.h"
                      "${CMAKE_SOURCE_DIR}/weft/base/error.h")
set(precompiled_tensor ${precompiled_graph} "${CMAKE_SOURCE_DIR}/weft/tensor/tensor.h")
set(precompiled_bindings ${precompiled_tensor} "${CMAKE_SOURCE_DIR}/weft/python/bindings.h")
set(precompiled_tests ${precompiled_tensor} <gtest/gtest.h>)
function(weft_precompile headers first)
  if(WEFT_PRECOMPILED)
    target_precompile_headers(${first} PRIVATE ${precompiled_${headers}})
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM ${first})
    endforeach()
  endif()
endfunction()

find_package(ZLIB REQUIRED)

# An archive where there is one: nothing has to be installed where weft runs.
function(weft_find_archive variable name header)
  find_path(${variable}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${variable}_LIBRARY NAMES lib${name}.a ${name} REQUIRED)
endfunction()
weft_find_archive(PCRE2 pcre2-8 pcre2.h)
weft_find_archive(UTF8PROC utf8proc utf8proc.h)

weft_room(base)
weft_room(dtype    NEEDS base)
weft_room(graph    NEEDS dtype)
weft_room(rewrite  NEEDS graph)
weft_room(simplify NEEDS rewrite)
weft_room(target   NEEDS simplify)
weft_room(isa      NEEDS target)
# The stages never see each other; run/ is the only room that knows their order.
weft_room(schedule NEEDS target isa)
weft_room(optimize NEEDS target isa)
weft_room(lower    NEEDS target isa)
weft_room(codegen  NEEDS target isa)
weft_room(render   NEEDS target isa)
weft_room(device   NEEDS target isa)
weft_room(run      NEEDS schedule optimize lower codegen render device)
weft_room(tensor   NEEDS run)
weft_room(io       NEEDS tensor LIBS ZLIB::ZLIB)
weft_room(text     NEEDS io LIBS ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY})
weft_room(nn       NEEDS io)
weft_room(onnx     NEEDS nn)
weft_room(llm      NEEDS onnx text)
weft_room(emu      NEEDS llm)
include(serve)
include(viz)

# The list of drivers is made of their folder, so that adding one touches no list.
file(GLOB drivers RELATIVE "${CMAKE_SOURCE_DIR}/weft/device/drivers" CONFIGURE_DEPENDS
     "${CMAKE_SOURCE_DIR}/weft/device/drivers/*.cpp")
list(TRANSFORM drivers REPLACE "^(.*)\\.cpp$" "WEFT_DRIVER(\\1)\n")
list(JOIN drivers "" drivers)
file(CONFIGURE OUTPUT generated/weft/device/drivers.def @ONLY CONTENT "@drivers@")
target_include_directories(weft_device PRIVATE "${CMAKE_BINARY_DIR}/generated")

# The C interface: a shared library that exports what weft.h declares and nothing else.
file(GLOB c_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/weft/c/*.cpp")
add_library(weft_c SHARED ${c_sources})
target_link_libraries(weft_c PRIVATE weft_llm)
target_include_directories(weft_c INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>"
                                            "$<INSTALL_INTERFACE:include>")
target_link_options(weft_c PRIVATE "-Wl,--version-script=${CMAKE_SOURCE_DIR}/weft/c/exports.map")
set_target_properties(weft_c PROPERTIES
  OUTPUT_NAME weft VERSION ${PROJECT_VERSION} SOVERSION 0 CXX_VISIBILITY_PRESET hidden
  LINK_DEPENDS "${CMAKE_SOURCE_DIR}/weft/c/exports.map")

# Aside: the oracle, linked by tests and tools only.
weft_room(eval     NEEDS graph)
# Programs made up, compared with the oracle and made smaller: tests and weft-trust link it.
weft_room(trust    NEEDS eval run)

# `weft repro`, `weft bisect` and `weft fuzz`: a program of its own, which the command starts.
add_executable(weft-trust weft/trust/main.cpp)
target_link_libraries(weft-trust PRIVATE weft_trust)

# What the machine can do at most is measured with the FMAs that the rest must not use unasked.
set_source_files_properties("${CMAKE_SOURCE_DIR}/weft/target/machine_limits.cpp"
  PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)

# The command. Its main.cpp is not part of the app library, so that tests can link the rest.
if(EXISTS "${CMAKE_SOURCE_DIR}/weft/app/main.cpp")
  file(GLOB app_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/weft/app/*.cpp")
  list(REMOVE_ITEM app_sources "${CMAKE_SOURCE_DIR}/weft/app/main.cpp")
  if(app_sources)
    add_library(weft_app STATIC ${app_sources})
    target_link_libraries(weft_app PUBLIC weft_options weft_emu weft_serve weft_viz)
    if(NOT WEFT_SERVE)
      target_compile_definitions(weft_app PRIVATE WEFT_NO_SERVE)
    endif()
  else()
    add_library(weft_app INTERFACE)
    target_link_libraries(weft_app INTERFACE weft_options weft_emu weft_serve weft_viz)
  endif()
  add_executable(weft weft/app/main.cpp)
  target_link_libraries(weft PRIVATE weft_app)
  add_dependencies(weft weft-trust)
else()
  weft_room(app NEEDS emu serve viz)
endif()

weft_precompile(base weft_base weft_dtype)
weft_precompile(graph weft_graph weft_rewrite weft_simplify weft_target weft_isa weft_schedule weft_optimize weft_lower
                weft_codegen weft_render weft_device weft_run weft_eval weft_trust)
weft_precompile(tensor weft_tensor weft_io weft_text weft_nn weft_onnx weft_llm weft_app)
weft_precompile(tensor weft_c)
if(WEFT_SERVE)
  weft_precompile(base weft_http)
  weft_precompile(tensor weft_serve weft_viz)  # with Boost's definitions
endif()
