# cmake -DFOLDER=weft/ROOM/page -DROOM=ROOM -DOUTPUT=file.cpp -P embed.cmake: the files of a page as arrays, and
# page_files() of weft/ROOM/page.h, which finds them.
file(GLOB files RELATIVE "${FOLDER}" "${FOLDER}/*")
list(SORT files)
set(arrays)
set(rows)
set(index 0)
foreach(name IN LISTS files)
  file(READ "${FOLDER}/${name}" bytes HEX)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${index}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", kFile${index}, ${size}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Made by cmake/embed.cmake.
#include \"weft/${ROOM}/page.h\"

namespace weft::${ROOM} {
namespace {
${arrays}
constexpr http::EmbeddedFile kFiles[] = {
${rows}};
}  // namespace

std::span<const http::EmbeddedFile> page_files() { return kFiles; }

}  // namespace weft::${ROOM}
")
