# partita_time_limit(SECONDS TEST...)  The time limit of tests that take so many seconds on a quiet machine: ten times that,
# so that a busy machine is no failure, and at least a minute.
function(partita_time_limit seconds)
  math(EXPR limit "10 * ${seconds}")
  if(limit LESS 60)
    set(limit 60)
  endif()
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${limit})
endfunction()
