rmsp_without_fused_additions("${CMAKE_CURRENT_LIST_DIR}/diagonals.cpp")
