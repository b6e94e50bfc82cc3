# The Python package: the extension, librmsp and the sources of python/rmsp, together in BUILD/python/rmsp, so that
# PYTHONPATH=BUILD/python is enough to use it. nanobind is found through Python, never fetched.

if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.26)
    set(stable_abi_module Development.SABIModule)  # CPython 3.12 or later
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module
    OPTIONAL_COMPONENTS ${stable_abi_module})
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE why RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR
        "RMSP_BUILD_PYTHON=ON, but ${Python_EXECUTABLE} has no nanobind (pip install nanobind):\n${why}")
endif()
find_package(nanobind CONFIG REQUIRED)

set(RMSP_PYTHON_DIR "${PROJECT_BINARY_DIR}/python")
add_subdirectory(python)
