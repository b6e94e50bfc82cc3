# rmsp_system_library(TARGET HEADER LIBRARY): an imported target for a library of the system that brings no CMake
# package. Installed beside rmspConfig.cmake, which needs it for a static librmsp.
function(rmsp_system_library target header library)
    if(TARGET ${target})
        return()
    endif()
    string(MAKE_C_IDENTIFIER "RMSP_${library}" prefix)
    string(TOUPPER "${prefix}" prefix)
    find_path(${prefix}_INCLUDE_DIR ${header})
    find_library(${prefix}_LIBRARY ${library})
    if(NOT ${prefix}_INCLUDE_DIR OR NOT ${prefix}_LIBRARY)
        message(FATAL_ERROR "librmsp needs ${library} (header ${header}, library lib${library}); "
            "scripts/setup installs everything, or point CMAKE_PREFIX_PATH at it")
    endif()
    mark_as_advanced(${prefix}_INCLUDE_DIR ${prefix}_LIBRARY)
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION "${${prefix}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIR}")
endfunction()
