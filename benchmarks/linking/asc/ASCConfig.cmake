# Stands for the ASC language that CANN brings to CMake.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
