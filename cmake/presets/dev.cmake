# Everyday build: debug information, no instrumentation, fast to compile.
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
