include(CMakePackageConfigHelpers)

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(mspmv PROPERTIES INSTALL_RPATH "${CMAKE_INSTALL_LIBDIR}")
else()
    file(RELATIVE_PATH to_libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(mspmv PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
endif()

# librmsp_c lies beside librmsp.
set_target_properties(rmsp_c PROPERTIES INSTALL_RPATH "$ORIGIN")

# Folders of libraries are known to the build only where they are not the system's.
set_target_properties(rmsp mspmv PROPERTIES INSTALL_RPATH_USE_LINK_PATH TRUE)

# All that `cmake --install` copies, for builds that leave tests and examples out.
add_custom_target(installed DEPENDS rmsp rmsp_c mspmv)
set(without_cluster "")
if(RMSP_HAVE_MPI)
    add_dependencies(installed rmsp_cluster mspmv-mpi)
else()
    set(without_cluster PATTERN "cluster.hpp" EXCLUDE)
endif()
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rmsp")
# Components are the packages of RmspPackages.cmake; what a program is built with goes to dev.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
install(TARGETS rmsp rmsp_c EXPORT rmspTargets
    LIBRARY COMPONENT library NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev RUNTIME COMPONENT library)
install(TARGETS mspmv COMPONENT tools)
if(RMSP_HAVE_MPI)
    # Targets of their own: who uses librmsp alone needs no MPI.
    get_target_property(driver_rpath mspmv INSTALL_RPATH)
    set_target_properties(mspmv-mpi PROPERTIES INSTALL_RPATH "${driver_rpath}")
    set_target_properties(rmsp_cluster PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS rmsp_cluster EXPORT rmspClusterTargets
        LIBRARY COMPONENT cluster NAMELINK_COMPONENT cluster ARCHIVE COMPONENT cluster RUNTIME COMPONENT cluster)
    install(TARGETS mspmv-mpi COMPONENT cluster)
    install(EXPORT rmspClusterTargets NAMESPACE rmsp:: DESTINATION "${package_dir}" COMPONENT cluster)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/rmsp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" ${without_cluster})
install(FILES "${PROJECT_SOURCE_DIR}/fortran/rmsp.f90" "${PROJECT_SOURCE_DIR}/fortran/rmsp_c.inc"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rmsp")
install(FILES "${PROJECT_BINARY_DIR}/include/rmsp/version.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rmsp")
install(EXPORT rmspTargets NAMESPACE rmsp:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rmspConfig.cmake.in" "${PROJECT_BINARY_DIR}/rmspConfig.cmake"
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rmspConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rmspConfig.cmake" "${PROJECT_BINARY_DIR}/rmspConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/RmspSystemLibrary.cmake" DESTINATION "${package_dir}")

# pkg-config: a shared librmsp brings its own dependencies; a static one passes them on.
set(RMSP_PC_REQUIRES "")
set(RMSP_PC_C_REQUIRES "Requires.private: rmsp")
set(RMSP_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
    set(RMSP_PC_C_REQUIRES "Requires: rmsp")
    set(RMSP_PC_REQUIRES "hwloc >= 2.0, fmt, spdlog, tomlplusplus, zlib, liblzma, libzstd")
    set(RMSP_PC_LIBS "-lnuma -pthread -lstdc++ -lm")
    if(RMSP_OPENMP)
        string(APPEND RMSP_PC_LIBS " ${OpenMP_CXX_FLAGS}")
    endif()
    if(RMSP_HAVE_CUDA)
        string(APPEND RMSP_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
    endif()
    if(RMSP_HAVE_METIS)
        string(APPEND RMSP_PC_LIBS " ${RMSP_METIS_LIBRARY}")
    endif()
    string(APPEND RMSP_PC_LIBS " -ldl")
endif()
# Relative to the file itself, so that an install tree can be moved.
file(RELATIVE_PATH RMSP_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" RMSP_PC_PREFIX "${RMSP_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/rmsp.pc.in" "${PROJECT_BINARY_DIR}/rmsp.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/rmsp-c.pc.in" "${PROJECT_BINARY_DIR}/rmsp-c.pc" @ONLY)
if(RMSP_HAVE_MPI)
    # To be compiled and linked by MPI's own wrapper, mpicxx: MPI's flags are not ours to say.
    configure_file("${PROJECT_SOURCE_DIR}/cmake/rmsp-cluster.pc.in" "${PROJECT_BINARY_DIR}/rmsp-cluster.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/rmsp-cluster.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT cluster)
endif()
install(FILES "${PROJECT_BINARY_DIR}/rmsp.pc" "${PROJECT_BINARY_DIR}/rmsp-c.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/machines" "${PROJECT_SOURCE_DIR}/configs" "${PROJECT_SOURCE_DIR}/schemas"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/rmsp" COMPONENT tools)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT dev FILES_MATCHING PATTERN "*.md")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT library)
if(PROJECT_IS_TOP_LEVEL AND BUILD_SHARED_LIBS)
    include(RmspPackages)
endif()
