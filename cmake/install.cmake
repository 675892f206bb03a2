# Install rules, the CMake package and the pkg-config file.
include(CMakePackageConfigHelpers)

set(redoubt_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/redoubt")
get_property(redoubt_components GLOBAL PROPERTY REDOUBT_COMPONENTS)

# Headers. A component that was not built does not leave its headers behind.
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/redoubt"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "testing" EXCLUDE
  PATTERN "adapters" EXCLUDE
  PATTERN "tls.hpp" EXCLUDE)
if(TARGET redoubt_tls)
  install(FILES "${PROJECT_SOURCE_DIR}/include/redoubt/tls.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/redoubt")
endif()
if(TARGET redoubt_testing)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/redoubt/testing"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/redoubt" FILES_MATCHING PATTERN "*.hpp")
endif()
if(TARGET redoubt_spdlog)
  file(GLOB redoubt_adapter_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/redoubt/adapters/spdlog*.hpp")
  install(FILES ${redoubt_adapter_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/redoubt/adapters")
endif()

# One export set per component, so that a user who does not ask for a component does not need its dependencies.
foreach(component IN LISTS redoubt_components)
  get_target_property(target redoubt::${component} ALIASED_TARGET)
  install(
    TARGETS ${target}
    EXPORT redoubt-${component}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(
    EXPORT redoubt-${component}
    NAMESPACE redoubt::
    FILE redoubt-${component}-targets.cmake
    DESTINATION "${redoubt_package_dir}")
  export(EXPORT redoubt-${component} NAMESPACE redoubt:: FILE "${PROJECT_BINARY_DIR}/redoubt-${component}-targets.cmake")
endforeach()

# The package files go into the build tree too: find_package(redoubt PATHS <build folder>) works without installing.
if(BUILD_SHARED_LIBS)
  set(redoubt_static OFF)
else()
  set(redoubt_static ON)
endif()
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/redoubt-config.cmake.in" "${PROJECT_BINARY_DIR}/redoubt-config.cmake"
  INSTALL_DESTINATION "${redoubt_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/redoubt-config-version.cmake" COMPATIBILITY SameMinorVersion)
foreach(module IN ITEMS Findhiredis.cmake FindLua51.cmake)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${module}" "${PROJECT_BINARY_DIR}/${module}" COPYONLY)
endforeach()
install(
  FILES "${PROJECT_BINARY_DIR}/redoubt-config.cmake" "${PROJECT_BINARY_DIR}/redoubt-config-version.cmake"
        cmake/Findhiredis.cmake cmake/FindLua51.cmake
  DESTINATION "${redoubt_package_dir}")

# pkg-config. A user of the static library links hiredis and fmt too; a user of the shared one does not.
set(redoubt_pc_requires "")
set(redoubt_pc_requires_private "hiredis >= 0.14, fmt >= 8")
if(redoubt_static)
  set(redoubt_pc_requires "${redoubt_pc_requires_private}")
  set(redoubt_pc_requires_private "")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(redoubt_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(redoubt_pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(redoubt_pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else() # relative to the file itself, so that an installed tree can be moved
  file(RELATIVE_PATH redoubt_pc_prefix "/root/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/root")
  string(PREPEND redoubt_pc_prefix "\${pcfiledir}/")
  set(redoubt_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(redoubt_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/redoubt.pc.in" "${PROJECT_BINARY_DIR}/redoubt.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/redoubt.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
