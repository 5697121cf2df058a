# renzan_build_id(<target>): a library whose BuildId() (renzan/base/build_id.h) names what it was
# built from: a hash over the sources, the compiler and its flags. When a source changes, the
# hash is recomputed and one file of three lines compiled, which few link: see build_id.h.
function(renzan_build_id target)
  set(script ${PROJECT_SOURCE_DIR}/cmake/make_build_id.cmake)
  set(output ${PROJECT_BINARY_DIR}/build_id.cc)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/renzan/*.cc ${PROJECT_SOURCE_DIR}/renzan/*.h
    ${PROJECT_SOURCE_DIR}/renzan/*.cu ${PROJECT_SOURCE_DIR}/renzan/*.cuh
    ${PROJECT_SOURCE_DIR}/renzan/*.proto)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  file(GLOB rules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/*.cmake)
  list(APPEND sources ${rules} ${PROJECT_SOURCE_DIR}/CMakeLists.txt)
  list(SORT sources)
  list(TRANSFORM sources REPLACE "^${PROJECT_SOURCE_DIR}/" "" OUTPUT_VARIABLE names)
  list(JOIN names "\n" names)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/build_id.txt CONTENT "@names@\n" @ONLY)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
      -D NAMES=${PROJECT_BINARY_DIR}/build_id.txt -D OUTPUT=${output}
      -D "BUILD=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${RENZAN_SANITIZE}"
      -P ${script}
    DEPENDS ${sources} ${PROJECT_BINARY_DIR}/build_id.txt
    COMMENT "Hashing the sources" VERBATIM)
  add_library(${target} STATIC ${output})
  # For libraries that are loaded at run time. They must not use each other's.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden)
endfunction()
