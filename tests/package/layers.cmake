# Tests the include-order check (CHECK) itself: it accepts a tree in order and names each fault of a tree that is not.
file(REMOVE_RECURSE ${WORK})

file(WRITE ${WORK}/good/ir/shape.hpp "#include <partita/support/text.hpp>\n#include \"../support/text.hpp\"\n")
file(WRITE ${WORK}/good/support/text.hpp "#include <string_view>\n// #include <partita/run/kernel.hpp>\n")
file(WRITE ${WORK}/good/run/kernel.hpp "#include <Eigen/Core>\n#include <partita/ir/shape.hpp>\n")
file(WRITE ${WORK}/good/op/vocabulary.hpp "")
file(WRITE ${WORK}/good/op/registry.hpp "#include <partita/op/vocabulary.hpp>\n")
file(WRITE ${WORK}/good/core/graph.hpp "#include <partita/op/registry.hpp>\n")
file(WRITE ${WORK}/good/partita.hpp "#include <partita/ir/shape.hpp>\n")
file(WRITE ${WORK}/good/cpu.hpp "#include <partita/run/kernel.hpp>\n")
execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK}/good -P ${CHECK} COMMAND_ERROR_IS_FATAL ANY)

file(WRITE ${WORK}/bad/ir/shape.hpp "  #  include <partita/op/dot.hpp>\n#include \"../op/dot.hpp\"\n")
file(WRITE ${WORK}/bad/op/dot.hpp "#include <xtensor/xarray.hpp>\n#include <partita/cpu.hpp>\n")
file(WRITE ${WORK}/bad/odd/x.hpp "")
file(WRITE ${WORK}/bad/run/kernel.hpp "#include <Eigen/Core>\n#include <mpi.h>\n#include <partita/ir/gone.hpp>\n")
file(WRITE ${WORK}/bad/run/fusion/groups.hpp "#include <partita/run/device/frame.hpp>\n")
file(WRITE ${WORK}/bad/run/device/frame.hpp "#include <partita/run/fusion/groups.hpp>\n")
file(WRITE ${WORK}/bad/op/vocabulary.hpp "")
file(WRITE ${WORK}/bad/op/add.hpp "#include <partita/op/vocabulary.hpp>\n")
file(WRITE ${WORK}/bad/op/registry.hpp "#include <partita/op/add.hpp>\n")
file(WRITE ${WORK}/bad/core/graph.hpp "#include <partita/op/add.hpp>\n")
file(WRITE ${WORK}/bad/core/loops.hpp "#include <partita/core/graph.hpp>\n#include <partita/op/registry.hpp>\n")
file(WRITE ${WORK}/bad/cpu.hpp "")
file(WRITE ${WORK}/bad/partita.hpp "#include <partita/run/kernel.hpp>\n")
execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK}/bad -P ${CHECK}
  OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE failed)
if(NOT failed)
  message(FATAL_ERROR "no fault is found:\n${text}")
endif()
foreach(fault IN ITEMS
    "partita/ir/shape.hpp:   #  include <partita/op/dot.hpp>\n    ir/ comes before op/"
    "partita/ir/shape.hpp: #include \"../op/dot.hpp\"\n    ir/ comes before op/"
    "partita/op/dot.hpp: #include <xtensor/xarray.hpp>\n    Eigen and xtensor are for run/ only, MPI for backend/"
    "partita/op/dot.hpp: #include <partita/cpu.hpp>\n    op/ must not include"
    "partita/odd/x.hpp: folder \"odd\" is not in the list"
    "partita/run/kernel.hpp: #include <partita/ir/gone.hpp>\n    this header does not exist"
    "partita/run/kernel.hpp: #include <mpi.h>\n    Eigen and xtensor are for run/ only, MPI for backend/"
    "partita/run/kernel.hpp: #include <mpi.h>\n    partita.hpp includes it"
    "partita/run/fusion/groups.hpp: #include <partita/run/device/frame.hpp>\n    run/fusion/ comes before run/device/"
    "partita/core/graph.hpp\n    includes ops, but not op/registry.hpp"
    "10 includes are against the order")
  string(FIND "${text}" "${fault}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "not found:\n${fault}\nin:\n${text}")
  endif()
endforeach()
