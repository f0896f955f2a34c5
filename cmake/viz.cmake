# The visualizer: its server and page where there are servers.
if(WEFT_SERVE)
  weft_room(viz NEEDS llm http)
  weft_uses_boost(viz)
  weft_page(viz)
else()
  weft_room(viz NEEDS llm)
endif()

# The verdicts on rules become part of the binary: `weft viz` shows them.
set(proofs "${CMAKE_SOURCE_DIR}/tests/rules/proofs.lock")
set(proof_text "")
if(EXISTS "${proofs}")
  file(READ "${proofs}" proof_text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${proofs}")
endif()
file(CONFIGURE OUTPUT generated/weft/viz/proofs.def @ONLY CONTENT "R\"lock(@proof_text@)lock\"\n")
target_include_directories(weft_viz PRIVATE "${CMAKE_BINARY_DIR}/generated")
