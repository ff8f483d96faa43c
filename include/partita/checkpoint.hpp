/// Checkpoints: sharded arrays on disk, in formats that other programs read. Adds to cpu.hpp.
#pragma once

#include <partita/backend/checkpoint/global_arrays.hpp>
#include <partita/backend/checkpoint/reader.hpp>
#include <partita/backend/checkpoint/save.hpp>
#include <partita/op/registry.hpp>
