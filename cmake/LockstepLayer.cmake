# A layer is one folder under src/ with a CMakeLists.txt, and one static library. Sources are every *.cc beside it except
# tests (*_test.cc); headers are every *.h, each of which must compile alone (CMAKE_VERIFY_INTERFACE_HEADER_SETS).
# Globbing keeps the folder the single statement of what belongs to a layer, and its CMakeLists.txt that of what it may include.

set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# The static layers go into shared libraries too (the Python package, what lies inside the job). Always, and not only where
# Python is: what a program is made of is compiled with the same flags whatever else is installed or built beside it.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)

# Where the checkout lies is in no object, neither by __FILE__ nor for a debugger: compilers' caches know it again in another.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Links in a fraction of the time. GCC knows it since 12, clang since long.
find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(lockstep_options INTERFACE)
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
# Which mutex guards what (base/mutex.h).
target_compile_options(lockstep_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Werror=thread-safety>)
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

# What ./test builds with AddressSanitizer for every change: the tests labelled `sanitized`, which are those of layers that
# read bytes from outside or whose threads share something, and the fuzz targets. `./test --all` builds everything so.
add_custom_target(lockstep_sanitized)

# lockstep_gtest(NAME TARGET [TIMEOUT seconds] [FILTER pattern] [LABELS ...]): a program of GoogleTest as one entry of ctest.
# Its cases run in one process: a process a case costs more than most cases do. scripts/test_report
# reads from what it prints which of them failed.
function(lockstep_gtest name target)
  cmake_parse_arguments(TEST "" "TIMEOUT;FILTER" "LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  target_compile_options(${target} PRIVATE -O0)  # What they cost is compiling, not running.
  if(sanitized IN_LIST TEST_LABELS)
    add_dependencies(lockstep_sanitized ${target})
  endif()
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
  if(TEST_FILTER)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "GTEST_FILTER=${TEST_FILTER}")
  endif()
endfunction()

# lockstep_unity(TARGET): several of its sources are compiled as one (LOCKSTEP_UNITY): most of what a single one costs is
# reading headers.
function(lockstep_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  # GCC takes what is local to such a source for a header's, which each source would have a different one of.
  if(LOCKSTEP_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# lockstep_may_include(LAYER ...): the folder of the caller names headers of these layers, and of no others
# (tests/structure/include_direction_test.py reads it). A layer stands in src/CMakeLists.txt before those that name it.
function(lockstep_may_include)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE layer)
  get_property(layers GLOBAL PROPERTY lockstep_layers)
  foreach(below IN LISTS ARGN)
    if(NOT below IN_LIST layers)
      message(FATAL_ERROR "src/${layer} may not depend on ${below}: src/CMakeLists.txt does not name it before.")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY lockstep_layers ${layer})
endfunction()

# lockstep_layer(): the static library of the caller's folder, lockstep_a_b of src/a/b, and its test.
#   DEPENDS layers, as paths below src/: what it may include and is linked with; LIBRARIES others.
#   FOLDERS below it that hold parts of the same library.
#   TEST_DEPENDS, TEST_LIBRARIES the same for its test alone.
#   SANITIZED its test runs under sanitizers for every change.
#   SMALL_DATA it never sees large data, and is optimised less.
function(lockstep_layer)
  cmake_parse_arguments(LAYER "SANITIZED;SMALL_DATA" "" "DEPENDS;LIBRARIES;FOLDERS;TEST_DEPENDS;TEST_LIBRARIES" ${ARGN})
  if(LAYER_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lockstep_layer does not know ${LAYER_UNPARSED_ARGUMENTS}")
  endif()
  lockstep_may_include(${LAYER_DEPENDS} ${LAYER_TEST_DEPENDS})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE name)
  string(REPLACE "/" "_" name ${name})
  foreach(kind DEPENDS TEST_DEPENDS)
    list(TRANSFORM LAYER_${kind} REPLACE "/" "_")
    list(TRANSFORM LAYER_${kind} REPLACE "^(.+)$" "$<TARGET_NAME_IF_EXISTS:lockstep_\\1>")  # A format's header has no library.
  endforeach()

  set(folders ${CMAKE_CURRENT_SOURCE_DIR})
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
  target_link_libraries(lockstep_${name} PUBLIC lockstep_options ${LAYER_DEPENDS} ${LAYER_LIBRARIES})
  lockstep_unity(lockstep_${name})
  # Under sanitizers not at all: sanitizers and the optimiser together compile four times as long as either.
  if(LAYER_SMALL_DATA)
    if(LOCKSTEP_SANITIZE)
      target_compile_options(lockstep_${name} PRIVATE -O0)
    elseif(CMAKE_BUILD_TYPE STREQUAL Release)
      target_compile_options(lockstep_${name} PRIVATE -O1)
    endif()
  endif()

  file(GLOB tests CONFIGURE_DEPENDS ${test_globs})
  if(LOCKSTEP_TESTS AND tests)
    add_executable(lockstep_${name}_test ${tests})
    target_link_libraries(lockstep_${name}_test PRIVATE lockstep_${name} ${LAYER_TEST_DEPENDS} ${LAYER_TEST_LIBRARIES}
                                                        lockstep_test_checkout GTest::gmock_main)
    lockstep_unity(lockstep_${name}_test)
    if(LAYER_SANITIZED)
      lockstep_gtest(unit.${name} lockstep_${name}_test LABELS unit sanitized)
    else()
      lockstep_gtest(unit.${name} lockstep_${name}_test LABELS unit)
    endif()
  endif()
endfunction()
