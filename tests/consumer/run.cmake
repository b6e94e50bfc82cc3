# One STEP of the installed-package test: install, find_package or pkg_config.
set(prefix "${WORK_DIR}/prefix")
set(ENV{DESTDIR} "")

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(STEP STREQUAL "install")
    file(REMOVE_RECURSE "${prefix}")
    run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
    # The driver finds its library from where it was installed.
    unset(ENV{LD_LIBRARY_PATH})
    run("${prefix}/${BINDIR}/mspmv" --version)
elseif(STEP STREQUAL "find_package")
    set(build "${WORK_DIR}/find_package")
    file(REMOVE_RECURSE "${build}")
    run("${CMAKE_COMMAND}" -S "${PROJECT_DIR}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}"
        "-DCMAKE_PREFIX_PATH=${prefix};$ENV{CMAKE_PREFIX_PATH}" "-Dexpected_version=${VERSION}")
    run("${CMAKE_COMMAND}" --build "${build}")
    run("${build}/consumer")
elseif(STEP STREQUAL "pkg_config")
    if(NOT PKG_CONFIG)
        message("skipped: pkg-config is not installed")
        return()
    endif()
    set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
    execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs "rmsp = ${VERSION}" OUTPUT_VARIABLE flags
        COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run("${CXX}" -std=c++20 "${PROJECT_DIR}/consumer.cpp" -o "${WORK_DIR}/consumer_pkg_config" ${flags})
    set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH}")
    run("${WORK_DIR}/consumer_pkg_config")
endif()
