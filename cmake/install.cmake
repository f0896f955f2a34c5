# cmake --install: the command, libweft.so with its C and C++17 headers (component c), and the static
# libraries with the headers that programs in C++20 may include (component cxx). The prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What weft/weft.h, the headers of operations, nn/ and io/ need. tests/consumers/run compiles each of them alone.
set(headers
  weft.h
  base/append_file.h base/byte_writer.h base/call_site.h base/context.h base/counters.def base/exceptions.h base/function_ref.h
  base/file.h base/options.def base/options.h base/small_vector.h base/spans.h
  dtype/codec.h dtype/codecs.def dtype/convert.h dtype/dtype.h dtype/dtypes.def dtype/value.h
  graph/graph.h graph/node.h graph/op.h graph/ops.def graph/program.h rewrite/pass_record.h run/recording_scope.h
  onnx/export.h onnx/model.h onnx/optimise.h onnx/runner.h onnx/value.h onnx/write.h
  text/chat.h text/template.h text/tokenizer.h text/train_bpe.h
  llm/answer.h llm/config.h llm/convert.h llm/draft.h llm/export_model.h llm/finetune.h llm/generator.h llm/grammar.h llm/kv_cache.h llm/lora.h llm/model.h
  llm/model_file.h llm/network.h llm/new_model.h llm/quantise_model.h llm/rope.h llm/trainer.h llm/training.h llm/training_options.h llm/training_texts.h
  llm/sampling.h llm/stepper.h llm/stop_texts.h llm/weights.h
  tensor/captured_function.h tensor/cell_ref.h tensor/derived.def tensor/dim.h tensor/distributions.h tensor/einsum.h tensor/elements.h
  tensor/fft.h
  tensor/hash.h tensor/image.h tensor/index.h tensor/jit.h tensor/linalg.h tensor/losses.h
  tensor/movement.h tensor/operand.h tensor/packed.h tensor/passes.h tensor/pooling.h tensor/random_keys.h tensor/reductions.h
  tensor/selection.h tensor/tensor.h tensor/training.h tensor/transforms.h)
file(GLOB room_headers RELATIVE "${CMAKE_SOURCE_DIR}/weft" CONFIGURE_DEPENDS
     "${CMAKE_SOURCE_DIR}/weft/nn/*.h" "${CMAKE_SOURCE_DIR}/weft/io/*.h")
foreach(header IN LISTS headers room_headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "weft/${header}" DESTINATION "include/weft/${folder}" COMPONENT cxx)
endforeach()
install(FILES weft/c/weft.h weft/c/weft.hpp weft/c/llm.h weft/c/llm.hpp weft/c/llm_train.h weft/c/llm_train.hpp
        DESTINATION include/weft/c COMPONENT c)

# weft::weft is all rooms that a program links.
add_library(weft_cxx INTERFACE)
target_link_libraries(weft_cxx INTERFACE weft_onnx weft_text weft_llm)
target_compile_features(weft_cxx INTERFACE cxx_std_20)
set_target_properties(weft_cxx PROPERTIES EXPORT_NAME weft)
set_target_properties(weft_c PROPERTIES EXPORT_NAME c)

set(rooms base dtype graph rewrite simplify target isa schedule optimize lower codegen render device run tensor io text nn onnx llm)
list(TRANSFORM rooms PREPEND weft_)
install(TARGETS weft_cxx weft_options ${rooms} EXPORT weft_cxx
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cxx)
install(TARGETS weft_c EXPORT weft_c
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT c)
if(TARGET weft)
  install(TARGETS weft weft-trust RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
endif()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
install(EXPORT weft_cxx NAMESPACE weft:: FILE weft_cxx.cmake DESTINATION "${package}" COMPONENT cxx)
install(EXPORT weft_c NAMESPACE weft:: FILE weft_c.cmake DESTINATION "${package}" COMPONENT c)
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake" DESTINATION "${package}" COMPONENT c)

file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/weft.pc.in weft.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT c)
