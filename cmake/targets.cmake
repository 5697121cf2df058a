# renzan_library(<folder> SOURCES a.cc ... DEPS <folder or library> ...)
#   One folder is one static library `renzan_<folder>`.
# renzan_test(<name> SOURCES a_test.cc ... DEPS ... [LABEL unit|e2e] [TIMEOUT seconds])
#   One GoogleTest binary; every test case becomes a ctest entry.

# Sources with Highway dispatch include themselves once per instruction set, so they cannot share
# a unit of a unity build with others.
function(renzan_keep_dispatch_apart)
  foreach(source ${ARGN})
    get_filename_component(path ${source} ABSOLUTE)
    if(EXISTS ${path})
      file(STRINGS ${path} dispatch REGEX "hwy/foreach_target")
      if(dispatch)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

function(renzan_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(renzan_${name} STATIC ${ARG_SOURCES})
  renzan_keep_dispatch_apart(${ARG_SOURCES})
  target_link_libraries(renzan_${name} PUBLIC ${ARG_DEPS})
endfunction()

function(renzan_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  # What is tested is optimised in full; the tests themselves are compiled more often than run.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
include(GoogleTest)

# Kernels are compiled for a few instruction sets and chosen at run time. The list is short on
# purpose: SSE4, AVX2 and AVX-512 (on Arm: NEON).
add_library(renzan_simd INTERFACE)
target_link_libraries(renzan_simd INTERFACE PkgConfig::HWY)
target_compile_definitions(renzan_simd INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
