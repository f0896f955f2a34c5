# Servers: Boost's headers for HTTP (nothing of Boost is linked), and pages as part of the binary.
if(NOT WEFT_SERVE)
  add_library(weft_serve INTERFACE)
  target_link_libraries(weft_serve INTERFACE weft_llm)
  # Of the visualizer what needs no server.
  set_source_files_properties("${CMAKE_SOURCE_DIR}/weft/viz/server.cpp" "${CMAKE_SOURCE_DIR}/weft/viz/site.cpp"
                              PROPERTIES HEADER_FILE_ONLY ON)
  return()
endif()
weft_room(http  NEEDS base)
weft_room(serve NEEDS llm http)
find_path(WEFT_BOOST_INCLUDE boost/beast/http/basic_parser.hpp)
if(NOT WEFT_BOOST_INCLUDE)
  message(FATAL_ERROR "the server needs Boost's headers (Debian: libboost-dev); -DWEFT_SERVE=OFF leaves it out")
endif()
function(weft_uses_boost room)
  target_include_directories(weft_${room} SYSTEM PRIVATE "${WEFT_BOOST_INCLUDE}")
  target_compile_definitions(weft_${room} PRIVATE BOOST_ASIO_NO_DEPRECATED BOOST_ERROR_CODE_HEADER_ONLY)
endfunction()
weft_uses_boost(http)
weft_uses_boost(serve)

# The files of weft/<room>/page, as page_files() of weft/<room>/page.h.
function(weft_page room)
  set(page "${CMAKE_SOURCE_DIR}/weft/${room}/page")
  file(GLOB page_files CONFIGURE_DEPENDS "${page}/*")
  set(page_source "${CMAKE_BINARY_DIR}/generated/weft/${room}/page_files.cpp")
  add_custom_command(OUTPUT "${page_source}"
    COMMAND "${CMAKE_COMMAND}" -DFOLDER=${page} -DROOM=${room} -DOUTPUT=${page_source}
            -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS ${page_files} "${CMAKE_SOURCE_DIR}/cmake/embed.cmake" VERBATIM)
  target_sources(weft_${room} PRIVATE "${page_source}")
endfunction()
weft_page(serve)
