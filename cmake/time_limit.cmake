# partita_time_limit(SECONDS TEST...)  Sets the time limit of tests that take SECONDS seconds on a quiet machine. The
# limit is ten times that, so that a busy machine causes no failure, and at least a minute. Long tests start first, so
# that none of them runs alone at the end.
function(partita_time_limit seconds)
  math(EXPR limit "10 * ${seconds}")
  if(limit LESS 60)
    set(limit 60)
  endif()
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${limit} COST ${seconds})
endfunction()
