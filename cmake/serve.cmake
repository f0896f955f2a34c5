# The server: Boost's headers for HTTP (nothing of Boost is linked), and its page as part of the binary.
if(NOT WEFT_SERVE)
  add_library(weft_serve INTERFACE)
  target_link_libraries(weft_serve INTERFACE weft_llm)
  return()
endif()
weft_room(serve NEEDS llm)
find_path(WEFT_BOOST_INCLUDE boost/beast/http/basic_parser.hpp)
if(NOT WEFT_BOOST_INCLUDE)
  message(FATAL_ERROR "the server needs Boost's headers (Debian: libboost-dev); -DWEFT_SERVE=OFF leaves it out")
endif()
target_include_directories(weft_serve SYSTEM PRIVATE "${WEFT_BOOST_INCLUDE}")
target_compile_definitions(weft_serve PRIVATE BOOST_ASIO_NO_DEPRECATED BOOST_ERROR_CODE_HEADER_ONLY)

set(page "${CMAKE_SOURCE_DIR}/weft/serve/page")
file(GLOB page_files CONFIGURE_DEPENDS "${page}/*")
set(page_source "${CMAKE_BINARY_DIR}/generated/weft/serve/page_files.cpp")
add_custom_command(OUTPUT "${page_source}"
  COMMAND "${CMAKE_COMMAND}" -DFOLDER=${page} -DOUTPUT=${page_source} -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
  DEPENDS ${page_files} "${CMAKE_SOURCE_DIR}/cmake/embed.cmake" VERBATIM)
target_sources(weft_serve PRIVATE "${page_source}")
