/// Partita: partitions tensor programs over device meshes.
///
/// The language, the engine and the compile-time checks. Running programs is in <partita/cpu.hpp>.
#pragma once

// Included first, because compilers print the include path above each error.
#include <partita/support/static_error.hpp>

#include <partita/core/action_text.hpp>
#include <partita/core/print_core.hpp>
#include <partita/dsl/branch.hpp>
#include <partita/dsl/call.hpp>
#include <partita/dsl/custom_vjp.hpp>
#include <partita/dsl/grad.hpp>
#include <partita/dsl/loop.hpp>
#include <partita/dsl/named.hpp>
#include <partita/dsl/nn.hpp>
#include <partita/dsl/ops.hpp>
#include <partita/dsl/optimization_barrier.hpp>
#include <partita/dsl/optimizer.hpp>
#include <partita/dsl/trace.hpp>
#include <partita/ir/equivalent.hpp>
#include <partita/ir/print.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/parse.hpp>
#include <partita/op/tile_map_text.hpp>
#include <partita/report/diff.hpp>
#include <partita/report/explain.hpp>
#include <partita/report/memory.hpp>
#include <partita/report/passes.hpp>
#include <partita/report/report.hpp>
#include <partita/report/sharding.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/without_cpu.hpp>
#include <partita/schedule/amalgamated.hpp>
#include <partita/schedule/check.hpp>
#include <partita/schedule/expect.hpp>
#include <partita/schedule/manual.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/schedule/remat.hpp>
#include <partita/schedule/reshard_plan.hpp>
#include <partita/schedule/shard.hpp>
#include <partita/spmd/parse.hpp>
#include <partita/spmd/parse_layout.hpp>
#include <partita/spmd/verify.hpp>
