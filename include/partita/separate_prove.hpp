/// The prover's part of the library that is compiled once; see support/separate.hpp. Include it in
/// one translation unit, with PARTITA_SEPARATE defined in all; without that it is empty.
#pragma once

#if defined(PARTITA_SEPARATE)
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/prove/prove.hpp>

namespace partita::separate {

verdict prove(const program& source, const device_program& local, const prove_options& options) {
  return prove_detail::prove(source, local, options);
}
verdict prove(const program& source, const pipelined& p, const prove_options& options) {
  return mpmd_detail::prove(source, p, options);
}

/// 500,000 steps take about 20 ms with optimization: bench_prove.
bool prove_by_default(const program& source, const device_program& made, failure& f) {
  const verdict v = prove_detail::prove(source, made, {.most_elements = 500'000});
  if (!v.undecided) f.record(v.error);
  return v.proved;
}
void prove_by_default(pipelined& p) {
  const verdict v = mpmd_detail::prove(p.original, p, {.most_elements = 500'000});
  if (!v.undecided) p.error.record(v.error);
  p.proved = v.proved;
}

}  // namespace partita::separate
#endif
