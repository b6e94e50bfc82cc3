# One object library for each folder; rmsp::rmsp is all of them.

add_library(rmsp_options INTERFACE)
target_compile_features(rmsp_options INTERFACE cxx_std_20)
target_compile_options(rmsp_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow>
    # GCC warns of overlaps inside std::string that cannot be (its bug 105651).
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr --extended-lambda -lineinfo>)
# GCC looks for garbage whenever its heap has grown. Where there is memory it need not: a build takes a tenth less time.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT mebibytes QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR mebibytes_a_core "${mebibytes} / ${cores}")
if(mebibytes_a_core GREATER 3000)
    target_compile_options(rmsp_options INTERFACE
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
endif()
if(CMAKE_UNITY_BUILD)
    # What another source calls so is not hidden, and what another source does not see is not in a header.
    target_compile_options(rmsp_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-shadow>
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(RMSP_WERROR)
    target_compile_options(rmsp_options INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror -Werror=all-warnings>)
endif()
if(RMSP_SANITIZE)
    target_compile_options(rmsp_options INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${RMSP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
    # GCC takes the instrumentation for uses of uninitialised variables.
    target_compile_options(rmsp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
    target_link_options(rmsp_options INTERFACE -fsanitize=${RMSP_SANITIZE})
endif()
if(RMSP_FUZZ)
    target_compile_options(rmsp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
    target_link_options(rmsp_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(RMSP_OPENMP)
    target_link_libraries(rmsp_options INTERFACE OpenMP::OpenMP_CXX)
else()
    # What only a pragma names is unused then.
    target_compile_options(rmsp_options INTERFACE
        "$<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas;-Wno-unused-parameter;-Wno-unused-variable>")
endif()
target_compile_definitions(rmsp_options INTERFACE
    $<$<BOOL:${RMSP_HAVE_CUDA}>:RMSP_HAVE_CUDA> $<$<BOOL:${RMSP_HAVE_NCCL}>:RMSP_HAVE_NCCL>)
target_include_directories(rmsp_options INTERFACE
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include" "${PROJECT_BINARY_DIR}/generated")

configure_file("${PROJECT_SOURCE_DIR}/include/rmsp/version.hpp.in"
    "${PROJECT_BINARY_DIR}/include/rmsp/version.hpp" @ONLY)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/rmsp_build.hpp"
    CONTENT "#pragma once\n#define RMSP_VERSION \"@PROJECT_VERSION@\"\n#define RMSP_FEATURES \"@RMSP_FEATURES@\"
#define RMSP_CUDA_LIBRARY_DIR \"@CUDAToolkit_LIBRARY_DIR@\"
#define RMSP_NCCL_LIBRARY_DIR \"@RMSP_NCCL_LIBRARY_DIR@\"\n" @ONLY)
add_custom_target(rmsp_commit
    COMMAND "${CMAKE_COMMAND}" "-Dcommit=${RMSP_COMMIT}" "-Dsource_dir=${PROJECT_SOURCE_DIR}"
        "-Dheader=${PROJECT_BINARY_DIR}/generated/rmsp_commit.hpp" -P "${PROJECT_SOURCE_DIR}/cmake/RmspCommit.cmake"
    BYPRODUCTS "${PROJECT_BINARY_DIR}/generated/rmsp_commit.hpp" VERBATIM)

# rmsp_optimise_little(): for directories that leave all work that takes long to others. A release build of them would
# spend most of its time on the inlined code of other libraries' headers.
macro(rmsp_optimise_little)
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Og>)
endmacro()

# Libraries whose code is all in their headers: needed to compile librmsp, never to link it.
set(RMSP_HEADER_ONLY nlohmann_json::nlohmann_json)

# rmsp_objects(TARGET LIST): an object library of librmsp in one of its lists, with the LINK and INCLUDE of the
# rmsp_folder() that calls it.
macro(rmsp_objects target list)
    add_library(${target} OBJECT)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_CODE_AFTER_INCLUDE "#undef RMSP_INSTANTIATE")
    add_dependencies(${target} rmsp_commit)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" ${arg_INCLUDE})
    target_link_libraries(${target} PRIVATE rmsp_options ${arg_LINK} Threads::Threads)
    set_target_properties(${target} PROPERTIES
        CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    set_property(GLOBAL APPEND PROPERTY ${list} ${target})
    set_property(GLOBAL APPEND PROPERTY RMSP_FOLDER_LINKS ${arg_LINK})
endmacro()

# rmsp_folder(NAME [LINK ...] [INCLUDE ...] [LIGHT ...]): the object library rmsp_NAME of every source in the current
# folder and below. Sources named *.cu, and those in folders called cuda, are of the CUDA backend; what stands in for
# them in a build without is called *_none.cpp. Headers of the folders are found as "NAME/...", from the root. LIGHT:
# what of it leaves all work that takes long to others, as folders, sources without their suffix or regular expressions:
# no loop over rows, entries or bytes is in it or in a header that it includes. Optimised, the inlined code of JSON and
# TOML takes longer to compile than any kernel, and methods of solvers, which only say what devices do, half as long
# again.
function(rmsp_folder name)
    cmake_parse_arguments(arg "" "" "LINK;INCLUDE;LIGHT" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
    if(RMSP_HAVE_CUDA)
        file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS *.cu)
        list(FILTER sources EXCLUDE REGEX "_none\\.cpp$")
        list(APPEND sources ${cuda_sources})
    else()
        list(FILTER sources EXCLUDE REGEX "/cuda/")
    endif()
    if(arg_LIGHT)
        set(light ${sources})
        list(JOIN arg_LIGHT "|" folders)
        list(FILTER light INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(${folders})(/|\\.cpp$)")
        list(REMOVE_ITEM sources ${light})
        rmsp_objects(rmsp_${name}_light RMSP_LIGHT_FOLDERS)
        target_sources(rmsp_${name}_light PRIVATE ${light})
        target_compile_options(rmsp_${name}_light PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Og>)
    endif()
    if(NOT sources)
        return()
    endif()
    rmsp_objects(rmsp_${name} RMSP_FOLDERS)
    target_sources(rmsp_${name} PRIVATE ${sources})
    # A build that puts several sources into one (CMAKE_UNITY_BUILD) compiles the same text of headers less often.
    # Bodies of SpMV's kernels call alike what is alike in each, and stay apart.
    set(apart ${sources})
    list(FILTER apart INCLUDE REGEX "/kernels/spmv/|\\.cu$")
    list(FILTER apart EXCLUDE REGEX "/entry\\.cpp$|/kernels/spmv/(choose/|table)")
    set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# rmsp_fixed_unity_batch(TARGET): every unity build puts the same sources of the target together, however many it puts
# together elsewhere (CMAKE_UNITY_BUILD_BATCH_SIZE): of more at a time GCC inlines less into loops over rows.
function(rmsp_fixed_unity_batch target)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${unity_batch})
endfunction()

# rmsp_cuda_together(TARGET NAME PATTERN...): a build that puts several sources into one puts these CUDA sources of the
# target into one too, but for those that an earlier call has, which CMake itself does from 3.31 on: most of what a
# small one takes is headers, read by four tools in turn. Names of their own, of kernels too, differ.
function(rmsp_cuda_together target name)
    if(NOT CMAKE_UNITY_BUILD OR NOT RMSP_HAVE_CUDA)
        return()
    endif()
    set(text "")
    file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
    foreach(source IN LISTS sources)
        get_source_file_property(taken "${source}" HEADER_FILE_ONLY)
        if(NOT taken)
            set_source_files_properties("${source}" PROPERTIES HEADER_FILE_ONLY ON)
            string(APPEND text "#include \"${source}\"\n#undef RMSP_INSTANTIATE\n")
        endif()
    endforeach()
    set(unity "${CMAKE_CURRENT_BINARY_DIR}/together_${name}.cu")
    file(CONFIGURE OUTPUT "${unity}" CONTENT "${text}" @ONLY)
    # CMake from 3.31 on would put these together into one.
    set_source_files_properties("${unity}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE "${unity}")
endfunction()

# Makes two libraries of the folders added so far: rmsp::rmsp, which exports the public API, and rmsp_internal, a static
# one for tests of what rmsp::rmsp hides. A program links one of them: each has the static state of librmsp.
function(rmsp_finish_library)
    add_library(rmsp)
    add_library(rmsp::rmsp ALIAS rmsp)
    rmsp_fill(rmsp)
    if(BUILD_SHARED_LIBS)
        set(map "${PROJECT_SOURCE_DIR}/cmake/rmsp.map")
        target_link_options(rmsp PRIVATE "LINKER:--version-script=${map}")
        set_property(TARGET rmsp PROPERTY LINK_DEPENDS "${map}")
        add_library(rmsp_internal STATIC EXCLUDE_FROM_ALL)
        rmsp_fill(rmsp_internal)
    else()
        add_library(rmsp_internal ALIAS rmsp)
    endif()
    set_target_properties(rmsp PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()

# The objects of all folders, and what they need.
function(rmsp_fill library)
    # Of equal functions of headers the linker takes the first: optimised ones.
    get_property(folders GLOBAL PROPERTY RMSP_FOLDERS)
    get_property(light GLOBAL PROPERTY RMSP_LIGHT_FOLDERS)
    list(APPEND folders ${light})
    get_property(links GLOBAL PROPERTY RMSP_FOLDER_LINKS)
    list(REMOVE_DUPLICATES links)
    list(REMOVE_ITEM links ${RMSP_HEADER_ONLY})
    if(RMSP_OPENMP)
        list(APPEND links OpenMP::OpenMP_CXX)
    endif()
    foreach(folder IN LISTS folders)
        target_sources(${library} PRIVATE $<TARGET_OBJECTS:${folder}>)
    endforeach()
    target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:rmsp_options> ${links} Threads::Threads)
    target_compile_features(${library} PUBLIC cxx_std_20)
    target_include_directories(${library} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# The bits of a source's results do not depend on the vectors that it was compiled for, some of which have fused
# multiply-adds.
function(rmsp_without_fused_additions source)
    set_source_files_properties("${source}" PROPERTIES
        COMPILE_OPTIONS $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffp-contract=off>)
endfunction()
