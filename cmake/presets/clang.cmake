# The second compiler: clang, warnings are errors.
set(CMAKE_CXX_COMPILER clang++-16 CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(REDOUBT_WERROR ON CACHE BOOL "")
