# Finds Lua 5.1, the language version of Redis scripts, and defines Lua51::Lua51.
#
# CMake's own FindLua takes the newest Lua that is installed, and a newer Lua is another language.
# Sets Lua51_FOUND and Lua51_VERSION. Hints: Lua51_ROOT, and pkg-config when it is installed.

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_search_module(PC_Lua51 QUIET lua5.1 lua-5.1 lua51)
endif()

find_path(
  Lua51_INCLUDE_DIR
  NAMES lua.h
  HINTS ${PC_Lua51_INCLUDE_DIRS}
  PATH_SUFFIXES lua5.1 lua51 lua-5.1)
find_library(
  Lua51_LIBRARY
  NAMES lua5.1 lua-5.1 lua51
  HINTS ${PC_Lua51_LIBRARY_DIRS})
mark_as_advanced(Lua51_INCLUDE_DIR Lua51_LIBRARY)

if(Lua51_INCLUDE_DIR)
  file(STRINGS "${Lua51_INCLUDE_DIR}/lua.h" Lua51_version_line REGEX "^#define[ \t]+LUA_RELEASE")
  if(Lua51_version_line MATCHES "Lua (5\\.1[.0-9]*)")
    set(Lua51_VERSION "${CMAKE_MATCH_1}")
  endif()
  unset(Lua51_version_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Lua51
  REQUIRED_VARS Lua51_LIBRARY Lua51_INCLUDE_DIR Lua51_VERSION
  VERSION_VAR Lua51_VERSION
  REASON_FAILURE_MESSAGE "On Debian: apt-get install liblua5.1-0-dev")

if(Lua51_FOUND AND NOT TARGET Lua51::Lua51)
  add_library(Lua51::Lua51 UNKNOWN IMPORTED)
  set_target_properties(
    Lua51::Lua51 PROPERTIES IMPORTED_LOCATION "${Lua51_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                "${Lua51_INCLUDE_DIR}")
endif()
