# Compiles FILE twice: with SHOULD_COMPILE it must be accepted, without it refused with a message that matches EXPECT.
set(ENV{LC_ALL} C) # plain quotes in the compiler's messages
list(TRANSFORM INCLUDES PREPEND "-I")
set(compile "${COMPILER}" -std=c++20 -fsyntax-only -DBOOST_ASIO_NO_DEPRECATED ${INCLUDES} "${FILE}")

execute_process(COMMAND ${compile} -DSHOULD_COMPILE RESULT_VARIABLE status ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the right version (-DSHOULD_COMPILE) is refused:\n${output}")
endif()

execute_process(COMMAND ${compile} RESULT_VARIABLE status ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "the wrong version compiles")
endif()
if(NOT output MATCHES "${EXPECT}")
  message(FATAL_ERROR "refused, but not with a message that matches: ${EXPECT}\n${output}")
endif()
