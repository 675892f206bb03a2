# Finds hiredis 0.14 or 1.x and defines hiredis::hiredis.
#
# Needed because Debian's hiredis 0.14 ships a config file without a target, under the name "Hiredis".
# Sets hiredis_FOUND and hiredis_VERSION. Hints: hiredis_ROOT, and pkg-config when it is installed.

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_hiredis QUIET hiredis)
endif()

find_path(
  hiredis_INCLUDE_DIR
  NAMES hiredis/hiredis.h
  HINTS ${PC_hiredis_INCLUDEDIR} ${PC_hiredis_INCLUDE_DIRS}
  PATH_SUFFIXES ..)
find_library(
  hiredis_LIBRARY
  NAMES hiredis
  HINTS ${PC_hiredis_LIBDIR} ${PC_hiredis_LIBRARY_DIRS})
mark_as_advanced(hiredis_INCLUDE_DIR hiredis_LIBRARY)

# The header is what the code is compiled against, so its numbers are the version.
if(hiredis_INCLUDE_DIR)
  file(STRINGS "${hiredis_INCLUDE_DIR}/hiredis/hiredis.h" hiredis_version_lines
       REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) [0-9]+")
  set(hiredis_VERSION "")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    if(hiredis_version_lines MATCHES "HIREDIS_${part} ([0-9]+)")
      list(APPEND hiredis_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN hiredis_VERSION "." hiredis_VERSION)
  unset(hiredis_version_lines)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  hiredis
  REQUIRED_VARS hiredis_LIBRARY hiredis_INCLUDE_DIR
  VERSION_VAR hiredis_VERSION
  REASON_FAILURE_MESSAGE "On Debian: apt-get install libhiredis-dev")

if(hiredis_FOUND AND NOT TARGET hiredis::hiredis)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(
    hiredis::hiredis PROPERTIES IMPORTED_LOCATION "${hiredis_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                      "${hiredis_INCLUDE_DIR}")
endif()
