# Configures, builds and runs the project in SOURCE against the package in PREFIX. With EXPECT_ERROR the configuration
# must fail with that text instead.
file(REMOVE_RECURSE "${WORK}")
execute_process(
  COMMAND
    "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
    "-DCMAKE_PREFIX_PATH=${PREFIX}" ${OPTIONS}
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(EXPECT_ERROR)
  string(REGEX REPLACE "[ \n]+" " " text "${output}")
  string(FIND "${text}" "${EXPECT_ERROR}" at)
  if(status EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "the configuration should have failed with: ${EXPECT_ERROR}\n${output}")
  endif()
  return()
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the consumer does not configure:\n${output}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}" --target consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/consumer" COMMAND_ERROR_IS_FATAL ANY)
