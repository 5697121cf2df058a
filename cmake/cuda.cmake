# Training on GPUs is built if CUDA's compiler is installed (nvcc on the PATH or in
# /usr/local/cuda).
set(RENZAN_HAS_CUDA OFF)
if(RENZAN_CUDA AND NOT RENZAN_SANITIZE)  # sanitizers cannot see into nvcc's code
  find_program(RENZAN_NVCC nvcc HINTS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
  if(RENZAN_NVCC)
    set(CMAKE_CUDA_COMPILER ${RENZAN_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${RENZAN_CUDA_ARCHITECTURES})
    if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 lacks it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    # If it were named explicitly, it would come before the directories of the C++ library.
    list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
    find_package(CUDAToolkit)
    if(TARGET CUDA::cublasLt)
      set(RENZAN_HAS_CUDA ON)
    endif()
  endif()
endif()
if(RENZAN_CUDA AND NOT RENZAN_CUDA STREQUAL "auto" AND NOT RENZAN_HAS_CUDA)
  message(FATAL_ERROR
    "RENZAN_CUDA=${RENZAN_CUDA}: nvcc or libcublasLt is missing, or RENZAN_SANITIZE is set")
endif()
