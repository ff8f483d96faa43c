# partita::xla -- partita::cpu with the PJRT C API, through which XLA compiles and runs programs. Defined if the header
# pjrt_c_api.h is found: in PARTITA_PJRT_INCLUDE (a variable of CMake or of the environment), or in the wheel xla-cpu-pjrt
# of the Python PARTITA_PYTHON. The plugin, a shared library, is chosen when a program runs.
if(PARTITA_PYTHON AND NOT PARTITA_PJRT_INCLUDE)
  cmake_path(GET PARTITA_PYTHON PARENT_PATH partita_python_root)
  cmake_path(GET partita_python_root PARENT_PATH partita_python_root)
  file(GLOB partita_wheels "${partita_python_root}/lib/python*/site-packages/xla_plugins/xla_cpu_pjrt")
endif()
find_path(PARTITA_PJRT_INCLUDE pjrt_c_api.h
  HINTS ENV PARTITA_PJRT_INCLUDE PATHS ${partita_wheels} PATH_SUFFIXES include
  DOC "Folder of pjrt_c_api.h, such as include/ of the wheel xla-cpu-pjrt")
find_file(PARTITA_PJRT_CPU_PLUGIN xla_cpu_pjrt.so PATHS ${partita_wheels} NO_DEFAULT_PATH
  DOC "PJRT plugin for CPUs, for tests and benchmarks")
if(PARTITA_PJRT_INCLUDE)
  add_library(partita_xla INTERFACE)
  add_library(partita::xla ALIAS partita_xla)
  target_link_libraries(partita_xla INTERFACE partita::cpu ${CMAKE_DL_LIBS})
  target_include_directories(partita_xla SYSTEM INTERFACE ${PARTITA_PJRT_INCLUDE})
else()
  message(STATUS "partita::xla is not defined: pjrt_c_api.h was not found (set PARTITA_PJRT_INCLUDE; the wheel "
    "xla-cpu-pjrt has it)")
endif()
