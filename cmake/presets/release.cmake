# What ships: g++, optimised, warnings are errors.
set(CMAKE_CXX_COMPILER g++ CACHE STRING "")
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(REDOUBT_WERROR ON CACHE BOOL "")
