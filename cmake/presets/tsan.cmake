# clang with ThreadSanitizer. Assertions stay on.
set(CMAKE_CXX_COMPILER clang++-16 CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS "-fsanitize=thread -fno-omit-frame-pointer" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
set(REDOUBT_WERROR ON CACHE BOOL "")
set(REDOUBT_TESTS_UNOPTIMISED ON CACHE BOOL "")
