# Reading Parquet (librenzan_parquet.so) is built if Arrow's C++ is installed (libarrow-dev and
# libparquet-dev, which not every distribution has). PyPI's pyarrow contains it, too: RENZAN_ARROW is
# then that package's folder, the parent of pyarrow.get_include().
set(RENZAN_HAS_ARROW OFF)
set(RENZAN_ARROW_LIBRARIES)
set(oldest_arrow 21)  # before, readers were returned in another way
if(RENZAN_ARROW AND NOT RENZAN_ARROW MATCHES "^(auto|ON)$")
  foreach(library arrow parquet)
    file(GLOB found ${RENZAN_ARROW}/lib${library}.so ${RENZAN_ARROW}/lib${library}.so.*)
    if(NOT found)
      message(FATAL_ERROR "RENZAN_ARROW=${RENZAN_ARROW}: has no lib${library}.so")
    endif()
    list(GET found 0 found)
    add_library(renzan_found_${library} SHARED IMPORTED)
    set_target_properties(renzan_found_${library} PROPERTIES IMPORTED_LOCATION ${found}
      INTERFACE_INCLUDE_DIRECTORIES ${RENZAN_ARROW}/include)
    list(APPEND RENZAN_ARROW_LIBRARIES renzan_found_${library})
  endforeach()
  set(RENZAN_HAS_ARROW ON)
elseif(RENZAN_ARROW)
  find_package(Arrow QUIET)
  find_package(Parquet QUIET)
  if(TARGET Parquet::parquet_shared AND Arrow_VERSION VERSION_GREATER_EQUAL ${oldest_arrow})
    set(RENZAN_ARROW_LIBRARIES Parquet::parquet_shared Arrow::arrow_shared)
    set(RENZAN_HAS_ARROW ON)
  elseif(RENZAN_ARROW STREQUAL "ON")
    message(FATAL_ERROR "RENZAN_ARROW=ON: Arrow's C++ (${oldest_arrow} or later) is missing")
  endif()
endif()
