# A layer is one folder under src/ and one static library. Sources are every *.cc beside the CMakeLists.txt except
# tests (*_test.cc); headers are every *.h, each of which must compile alone (CMAKE_VERIFY_INTERFACE_HEADER_SETS).
# Globbing keeps the folder the single statement of what belongs to a layer.

set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

add_library(lockstep_options INTERFACE)
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
# GCC 12 warns of overlap in std::string's own operator+ (its bug 105329) and notes an ABI change of GCC 4.6.
target_compile_options(lockstep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-psabi>)
if(LOCKSTEP_SANITIZE)
  target_compile_definitions(lockstep_options INTERFACE LOCKSTEP_SANITIZED)
  target_compile_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=undefined)
  # RapidJSON adds to a null pointer when its buffer is empty, which clang's checks report and nobody can observe.
  # Named from the build folder, where Ninja compiles, and with a digest of what it says: so ccache knows an object of
  # another checkout again, and not one of another list.
  set(ignorelist ${PROJECT_SOURCE_DIR}/cmake/sanitizer-ignorelist.txt)
  file(RELATIVE_PATH ignorelist_path ${CMAKE_BINARY_DIR} ${ignorelist})
  file(SHA256 ${ignorelist} ignorelist_digest)
  string(SUBSTRING ${ignorelist_digest} 0 8 ignorelist_digest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ignorelist})
  target_compile_options(lockstep_options INTERFACE
    $<$<CXX_COMPILER_ID:Clang>:-fsanitize-ignorelist=${ignorelist_path}>)
  target_compile_definitions(lockstep_options INTERFACE
    $<$<CXX_COMPILER_ID:Clang>:LOCKSTEP_IGNORELIST_${ignorelist_digest}>)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

function(lockstep_layer name)
  cmake_parse_arguments(LAYER "" "" "DEPENDS;FOLDERS" ${ARGN})
  set(folders ${CMAKE_CURRENT_SOURCE_DIR})  # FOLDERS below it hold parts of the same library.
  foreach(folder IN LISTS LAYER_FOLDERS)
    list(APPEND folders ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endforeach()
  list(TRANSFORM folders APPEND /*.cc OUTPUT_VARIABLE source_globs)
  list(TRANSFORM folders APPEND /*.h OUTPUT_VARIABLE header_globs)
  list(TRANSFORM folders APPEND /*_test.cc OUTPUT_VARIABLE test_globs)
  file(GLOB sources CONFIGURE_DEPENDS ${source_globs})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  file(GLOB headers CONFIGURE_DEPENDS ${header_globs})
  add_library(lockstep_${name} STATIC ${sources})
  target_sources(lockstep_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
  set_target_properties(lockstep_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(lockstep_${name} PUBLIC lockstep_options ${LAYER_DEPENDS})
  # Sanitizers and the optimiser together compile four times as long as either: layers that never see large data go
  # without the optimiser then.
  if(LOCKSTEP_SANITIZE AND name MATCHES "^(http|serve|control|agent|cli)")
    target_compile_options(lockstep_${name} PRIVATE -O0)
  endif()

  file(GLOB tests CONFIGURE_DEPENDS ${test_globs})
  if(LOCKSTEP_TESTS AND tests)
    add_executable(lockstep_${name}_test ${tests})
    target_link_libraries(lockstep_${name}_test PRIVATE lockstep_${name} GTest::gmock_main)
    if(LOCKSTEP_SANITIZE)
      target_compile_options(lockstep_${name}_test PRIVATE -O0)
    endif()
    # Only where it is used: a definition that differs from checkout to checkout keeps compilers' caches from helping.
    foreach(test IN LISTS tests)
      file(STRINGS ${test} uses REGEX "LOCKSTEP_SOURCE_DIR" LIMIT_COUNT 1)
      if(uses)
        set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS LOCKSTEP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      endif()
    endforeach()
    gtest_discover_tests(lockstep_${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
endfunction()
