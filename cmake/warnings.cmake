# redoubt_own_settings(TARGET): how redoubt compiles its own code. Nothing of this reaches a user's targets, and a
# project that adds redoubt as a subdirectory keeps its own choice of warnings.
function(redoubt_own_settings target)
  # Keeps deprecated Asio interfaces out, so that newer Boost releases compile the code too.
  target_compile_definitions(${target} PRIVATE BOOST_ASIO_NO_DEPRECATED)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    # Three that are false alarms in g++ 12: maybe-uninitialized inside std::variant, std::optional and std::regex, restrict
    # in "literal" + std::string, and mismatched-new-delete in the coroutine frames of Boost 1.81 where these are inlined.
    # clang's own analysis and the sanitizer runs cover what they are for.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict -Wno-mismatched-new-delete)
    endif()
    if(REDOUBT_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
endfunction()
