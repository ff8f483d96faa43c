# Runs a job that has to fail, and checks that it ends within SECONDS, with a text that matches TEXT (a regular
# expression). Variables: LAUNCH (list: mpiexec -n 2), PROGRAM, HOW (its argument), TEXT, SECONDS.
cmake_minimum_required(VERSION 3.25)

string(TIMESTAMP start "%s")
execute_process(COMMAND ${LAUNCH} ${PROGRAM} ${HOW} TIMEOUT 60
  OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
string(TIMESTAMP end "%s")
math(EXPR took "${end} - ${start}")

if(status STREQUAL "0")
  message(FATAL_ERROR "${HOW}: the job succeeds\n${text}")
elseif(took GREATER_EQUAL SECONDS)
  message(FATAL_ERROR "${HOW}: the job ends after ${took} s; ${SECONDS} s are allowed\n${text}")
elseif(NOT text MATCHES "${TEXT}")
  message(FATAL_ERROR "${HOW}: the text does not match \"${TEXT}\"\n${text}")
endif()
