# renzan_library(<folder> [COLD] SOURCES a.cc ... [COLD_SOURCES b.cc ...] DEPS <folder or library> ...)
#   One folder is one static library `renzan_<folder>`. COLD, COLD_SOURCES: their speed
#   does not matter, so they are compiled with -O1, which takes less time.
# renzan_test(<name> SOURCES a_test.cc ... DEPS ... [LABEL unit|e2e] [TIMEOUT seconds] [COST seconds])
#   One GoogleTest binary; every test case becomes a ctest entry. COST: for one with a case of more
#   than 30 s, which then does not start last.

# Sources with Highway dispatch include themselves once per instruction set, so they cannot share
# a unit of a unity build with others. Their loops are what a step spends its time in: -O3.
function(renzan_set_up_kernels)
  foreach(source ${ARGN})
    get_filename_component(path ${source} ABSOLUTE)
    if(EXISTS ${path})
      file(STRINGS ${path} dispatch REGEX "hwy/foreach_target")
      if(dispatch)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
          COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
      endif()
    endif()
  endforeach()
endfunction()

function(renzan_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;COLD_SOURCES;DEPS" ${ARGN})
  set(library renzan_${name})
  add_library(${library} STATIC ${ARG_SOURCES})
  renzan_set_up_kernels(${ARG_SOURCES})
  target_link_libraries(${library} PUBLIC ${ARG_DEPS})
  if(ARG_COLD)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(ARG_COLD_SOURCES)
    # Objects of their own: sources with other options cannot share a unit of a unity build.
    add_library(${library}_cold OBJECT ${ARG_COLD_SOURCES})
    target_link_libraries(${library}_cold PRIVATE ${ARG_DEPS})
    target_compile_options(${library}_cold PRIVATE $<$<CONFIG:Release>:-O1>
      $<$<BOOL:$<TARGET_PROPERTY:${library},POSITION_INDEPENDENT_CODE>>:-fPIC>
      $<$<STREQUAL:$<TARGET_PROPERTY:${library},CXX_VISIBILITY_PRESET>,hidden>:-fvisibility=hidden>)
    set_target_properties(${library}_cold PROPERTIES UNITY_BUILD_BATCH_SIZE 48)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_cold>)
  endif()
endfunction()

function(renzan_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;COST" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_precompile_headers(${name} REUSE_FROM renzan_test_headers)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  # Code under test is fully optimised; tests themselves spend more time in the compiler than
  # running.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST})
endfunction()
include(GoogleTest)

# GoogleTest's headers take longer to read than most tests to compile: they are read once for all.
file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "")
add_library(renzan_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cc)
target_precompile_headers(renzan_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
  <fmt/format.h> <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <vector>)
target_link_libraries(renzan_test_headers PRIVATE fmt::fmt GTest::gmock GTest::gtest)
target_compile_options(renzan_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)

# Kernels are compiled for a few instruction sets and chosen at run time. The list is short on
# purpose: SSE4, AVX2 and AVX-512 (on Arm: NEON). Nothing below SSE4 is compiled: no class of
# numerics.isa needs it, and Highway's scalar code takes the longest to compile.
add_library(renzan_simd INTERFACE)
target_link_libraries(renzan_simd INTERFACE PkgConfig::HWY)
target_compile_definitions(renzan_simd INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(renzan_simd INTERFACE HWY_BASELINE_TARGETS=HWY_SSE4)
endif()
