/// Device code: a device-local program as a file of C++, or compiled into the user's binary.
#pragma once

#include <partita/backend/code/compiled.hpp>
#include <partita/backend/code/write_cpp.hpp>
