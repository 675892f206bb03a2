# g++ with AddressSanitizer and UndefinedBehaviorSanitizer; the first finding ends the program.
set(CMAKE_CXX_COMPILER g++ CACHE STRING "")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" CACHE STRING "")
set(CMAKE_CXX_FLAGS_DEBUG "-g1" CACHE STRING "") # line numbers in reports; full information doubles the build time
set(REDOUBT_TESTS_UNOPTIMISED ON CACHE BOOL "")
