# Builds TARGET in the build tree, and runs PROGRAM if there is one.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${REDOUBT_BUILD}" --target "${TARGET}" --config "${BUILD_TYPE}"
                COMMAND_ERROR_IS_FATAL ANY)
if(PROGRAM)
  execute_process(COMMAND "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
endif()
