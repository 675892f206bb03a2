# Which lines the corpus of the fuzz targets reaches; tests/fuzz/coverage.sh prints it.
set(CMAKE_CXX_COMPILER clang++-16 CACHE STRING "")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS "-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping" CACHE STRING "")
set(REDOUBT_BUILD_FUZZ ON CACHE BOOL "")
set(REDOUBT_BUILD_EXAMPLES OFF CACHE BOOL "")
