# partita::cpu_separate -- partita::cpu with the kernels compiled once, in a static library of the project that uses
# them, instead of in every translation unit.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/partita_kernels.cpp
  CONTENT "#include <partita/run/kernels/table.hpp>\n")
add_library(partita_cpu_separate STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/partita_kernels.cpp)
add_library(partita::cpu_separate ALIAS partita_cpu_separate)
target_link_libraries(partita_cpu_separate PUBLIC partita::cpu)
target_compile_definitions(partita_cpu_separate PUBLIC PARTITA_SEPARATE_KERNELS)
