# renzan_library(<folder> SOURCES a.cc ... DEPS <folder or library> ...)
#   One folder is one static library `renzan_<folder>`.
# renzan_test(<name> SOURCES a_test.cc ... DEPS ... [LABEL unit|e2e] [TIMEOUT seconds])
#   One GoogleTest binary; every test case becomes a ctest entry.

function(renzan_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(renzan_${name} STATIC ${ARG_SOURCES})
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
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
include(GoogleTest)
