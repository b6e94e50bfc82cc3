# Run at each build (cmake -P): writes the header that names the commit, and touches it only when that changed.
if(NOT commit)
    execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
        WORKING_DIRECTORY "${source_dir}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
    set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${header}" CONTENT "#pragma once\n#define RMSP_COMMIT \"${commit}\"\n")
