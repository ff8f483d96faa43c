/// Device code: a device-local program as a file of C++.
#pragma once

#include <partita/backend/code/write_cpp.hpp>
