# Read by CTest when it starts (see rmsp_test()). rmsp_add_suites(NAME PROGRAM LABELS REPORTS): one CTest entry for each
# test suite of a GoogleTest program, "NAME/SUITE"; its report goes to REPORTS/NAME/SUITE.xml. An entry for each test
# would be thousands of processes, which take longer to start than most tests take to run. Devices of tests share cores,
# with each other and with other entries: a thread that waits for its team leaves its core to them.
function(rmsp_add_suites name program labels reports)
    file(MAKE_DIRECTORY "${reports}/${name}")
    set(status "not built")
    if(EXISTS "${program}")
        execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE listing RESULT_VARIABLE status)
    endif()
    if(NOT status EQUAL 0)
        # Run as a whole, so that it is seen to fail.
        add_test("${name}" "${program}")
        set_tests_properties("${name}" PROPERTIES LABELS "${labels}" ENVIRONMENT OMP_WAIT_POLICY=passive)
        return()
    endif()
    string(REGEX REPLACE " +#[^\n]*" "" listing "${listing}")  # what types and parameters the tests have
    # Suites begin a line and end with a dot; their tests are indented. CTest starts suites of many tests first, so that
    # none of these is left alone at the end.
    string(REGEX MATCHALL "(^|\n)[^ \n]+\\.(\n +[^\n]*)*" suites "${listing}")
    foreach(suite IN LISTS suites)
        string(REGEX MATCHALL "\n +" tests "${suite}")
        list(LENGTH tests cost)
        string(REGEX REPLACE "^\n|\\..*$" "" suite "${suite}")
        add_test("${name}/${suite}" "${program}"
            "--gtest_filter=${suite}.*" "--gtest_output=xml:${reports}/${name}/${suite}.xml")
        set_tests_properties("${name}/${suite}" PROPERTIES LABELS "${labels}" TIMEOUT 600 SKIP_RETURN_CODE 77
            COST ${cost} ENVIRONMENT OMP_WAIT_POLICY=passive)
    endforeach()
endfunction()
