# rota_check(target [DEVICE device] [OPTIONS option ...])
#
# Adds a target `rota_check_<target>` that proves the HIP kernels of a target race-free in LDS, each with the flags that
# the build compiles it with; with CTest, a test of the same name too. Nothing is built for it, and no GPU is needed.
#
#     include(rota.cmake)
#     add_library(kernels OBJECT softmax.hip gemm.hip)
#     rota_check(kernels DEVICE mi355x)

cmake_minimum_required(VERSION 3.20)

function(rota_check target)
  cmake_parse_arguments(PARSE_ARGV 1 ROTA "" "DEVICE" "OPTIONS")
  if(ROTA_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rota_check(${target}): unknown arguments ${ROTA_UNPARSED_ARGUMENTS}")
  endif()
  find_program(ROTA_EXECUTABLE rota REQUIRED)
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS ON)

  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(kernels "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
    if(EXISTS "${source}")
      file(STRINGS "${source}" found REGEX "__global__" LIMIT_COUNT 1)
      if(found)
        list(APPEND kernels "${source}")
      endif()
    endif()
  endforeach()
  if(NOT kernels)
    message(FATAL_ERROR "rota_check(${target}): none of its sources has a kernel")
  endif()

  set(command "${ROTA_EXECUTABLE}" check ${kernels} --build-dir "${CMAKE_BINARY_DIR}")
  if(ROTA_DEVICE)
    list(APPEND command --device "${ROTA_DEVICE}")
  endif()
  list(APPEND command ${ROTA_OPTIONS})
  add_custom_target(
    rota_check_${target}
    COMMAND ${command}
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    COMMENT "rota check ${target}"
    VERBATIM
  )
  if(CMAKE_TESTING_ENABLED)
    add_test(NAME rota_check_${target} COMMAND ${command} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  endif()
endfunction()
