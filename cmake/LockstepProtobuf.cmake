# lockstep_protobuf_messages(NAME SCHEMA): a static library NAME of the messages in SCHEMA (beside the calling
# CMakeLists.txt), for protobuf-lite. Include "SCHEMA's stem.pb.h". Generated code is not ours to keep free of warnings.
function(lockstep_protobuf_messages name schema)
  cmake_path(GET schema STEM stem)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${schema})
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h
    COMMAND protobuf::protoc --proto_path=${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${generated} ${source}
    DEPENDS ${source}
    COMMENT "Compiling ${schema}"
    VERBATIM)
  add_library(${name} STATIC ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h)
  target_include_directories(${name} SYSTEM PUBLIC ${generated})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf-lite)
endfunction()
