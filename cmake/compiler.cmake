# How every translation unit is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
find_package(Threads REQUIRED)

# ccache that hits across checkouts: paths are hashed relative to the source tree.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT WEFT_PRECOMPILED AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${WEFT_CCACHE}")
endif()

add_library(weft_options INTERFACE)
target_include_directories(weft_options INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>"
                                                  "$<INSTALL_INTERFACE:include>")
target_link_libraries(weft_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
# Caches are keyed by the build id note (weft/base/version.h).
target_link_options(weft_options INTERFACE -Wl,--build-id=sha1)
# Contraction to FMA is a permission in the IR, never the host compiler's choice.
set(warnings
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -ffp-contract=off
  # GCC 12 reports these for code that cannot reach them (spans and inlined small vectors at -O2); Clang and the sanitizers
  # watch the same faults without the false alarms.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized$<SEMICOLON>-Wno-stringop-overflow$<SEMICOLON>-Wno-stringop-overread$<SEMICOLON>-Wno-array-bounds>
  $<$<BOOL:${WEFT_WERROR}>:-Werror>)
target_compile_options(weft_options INTERFACE "$<BUILD_INTERFACE:${warnings}>")
target_compile_definitions(weft_options INTERFACE
                           $<BUILD_INTERFACE:$<$<BOOL:${WEFT_DEV_CHECKS}>:WEFT_DEV=1>>)

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  # Programs in C link libweft.so, whose sanitized C++ asks for more of Clang's run time than C does.
  add_link_options("$<$<LINK_LANG_AND_ID:C,Clang>:-fsanitize-link-c++-runtime;-lstdc++>")
  # GCC asks these of every access, for a third of a room's build. AddressSanitizer stops at null anyway; Clang's UBSan,
  # under which the fuzzers run, asks all of them.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=null,alignment,pointer-overflow>)
  # UBSan of Clang looks for a function's type in the bytes before it: generated code may begin its pages, and has none.
  add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
endif()
if(WEFT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  # How a message's numbers are printed guides no search, and would be half of what refusing an input costs.
  set_source_files_properties(weft/base/format.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link
                              SKIP_PRECOMPILE_HEADERS ON)
endif()
