# Installs the build into PREFIX by way of another folder: what was installed must stand being moved.
file(REMOVE_RECURSE "${PREFIX}" "${PREFIX}-first")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${REDOUBT_BUILD}" --prefix "${PREFIX}-first"
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME "${PREFIX}-first" "${PREFIX}")

file(GLOB_RECURSE files "${PREFIX}/*.cmake" "${PREFIX}/*.pc")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  foreach(place IN ITEMS "${REDOUBT_SOURCE}" "${REDOUBT_BUILD}" "${PREFIX}")
    string(FIND "${text}" "${place}" at)
    if(NOT at EQUAL -1)
      message(SEND_ERROR "${file} contains the path ${place}")
    endif()
  endforeach()
endforeach()
