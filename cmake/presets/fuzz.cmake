# Search for new fuzzing inputs with libFuzzer: builds tests/fuzz/*_fuzz.cpp as programs of their own.
#   .build/fuzz/tests/fuzz/reader_fuzz tests/fuzz/corpus/reader
set(CMAKE_CXX_COMPILER clang++-16 CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all" CACHE STRING "")
set(REDOUBT_BUILD_FUZZ ON CACHE BOOL "")
set(REDOUBT_BUILD_EXAMPLES OFF CACHE BOOL "")
