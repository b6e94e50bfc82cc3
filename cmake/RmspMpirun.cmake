# rmsp_mpirun(NAME PROCESSES TARGET [ARGUMENTS ...]): a CTest entry of a program started by mpirun on this machine.
set(RMSP_MPIRUN "${MPIEXEC_EXECUTABLE}")
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE version ERROR_QUIET)
if(version MATCHES "Open MPI|OpenRTE")
    # Processes share the machine's cores, and may be root's, in containers.
    list(APPEND RMSP_MPIRUN --oversubscribe --allow-run-as-root --bind-to none)
    # All processes end where one dies, unless this is said; the option went with version 5.
    if(version MATCHES "[( ]4\\.")
        set(RMSP_MPIRUN_LEAVES_OTHERS --enable-recovery)
    endif()
endif()
# MPI keeps memory until a process ends, and its plugins, which are unloaded before, cannot be named to be passed over.
set(RMSP_MPI_ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_MCA_btl_vader_single_copy_mechanism=none"
    "ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1")
function(rmsp_mpirun name processes target)
    add_test(NAME ${name} COMMAND ${RMSP_MPIRUN} ${MPIEXEC_NUMPROC_FLAG} ${processes} $<TARGET_FILE:${target}> ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS "host;runtime" TIMEOUT 120 PROCESSORS 2
        ENVIRONMENT "${RMSP_MPI_ENVIRONMENT}")
endfunction()
