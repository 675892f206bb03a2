# g++ with coverage counters; run the tests, then: gcovr --root . --filter 'include/|src/' .build/coverage
set(CMAKE_CXX_COMPILER g++ CACHE STRING "")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS "-O0 --coverage -fprofile-update=atomic" CACHE STRING "")
