/// Typical mistakes: device-local programs as people write them by hand, right and wrong.
///
/// Lowering makes other programs. Here sums are local before they are reduced, means are scaled
/// before or after that, matrices are transposed where it is convenient, and indices are computed
/// from shard_start.
#pragma once

#include <string>

#include "../data.hpp"
#include "practice/data_parallel.hpp"
#include "practice/equalities.hpp"
#include "practice/sequence_parallel.hpp"
#include "practice/tensor_parallel.hpp"

namespace practice {

namespace pt = partita;

inline std::vector<practice_case> all_cases() {
  std::vector<practice_case> all;
  for (const auto& group : {data_parallel(), tensor_parallel(), sequence_parallel(), equalities()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// Returns a text with all occurrences of a piece replaced.
inline std::string replaced(std::string in, std::string_view from, std::string_view to) {
  for (auto at = in.find(from); at != in.npos; at = in.find(from, at + to.size()))
    in.replace(at, from.size(), to);
  return in;
}

/// Returns the text of the local program with a mistake; empty unless each of its edits has exactly
/// one place.
inline std::string with(const mistake& m, std::string_view local) {
  std::string text(local);
  for (const edit& e : m.edits) {
    const auto at = text.find(e.from);
    if (at == text.npos || text.find(e.from, at + 1) != text.npos) return {};
    text.replace(at, e.from.size(), e.to);
  }
  return text;
}

/// A source and a local program that was written for it.
struct written {
  pt::program source;
  pt::device_program device;
  pt::failure error;
};

/// Returns layouts of the arrays whose blocks have these types, with the minimum padding.
inline pt::vec<pt::layout> layouts_of(const std::vector<std::string_view>& texts, const pt::mesh& m,
                                      const pt::vec<pt::tensor_type>& whole, auto piece,
                                      pt::failure& error) {
  pt::vec<pt::layout> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pt::shape any = piece(static_cast<int>(i)).shape;  // a dimension that the axes divide
    for (int d = 0; d < any.rank; ++d) any[d] *= m.devices();
    out.push_back(pt::parse_layout(texts[i], m, any, error));
    const pt::shape &s = whole[i].shape, own = piece(static_cast<int>(i)).shape;
    bool fits = s.rank == own.rank;
    for (int d = 0; fits && d < s.rank; ++d) {
      const std::int64_t n = out[i].pieces(m, d);
      fits = own[d] == (s[d] + n - 1) / n;
    }
    if (!fits) error.record("practice", "layout ", texts[i], " does not cut ", whole[i]);
  }
  return out;
}

/// Reads a case with this text of the local program; `element` is a type other than f32.
inline written read(const practice_case& c, std::string_view local,
                    std::string_view element = "f32") {
  written w;
  w.source = pt::parse(replaced(std::string(c.source), "f32", element));
  pt::device_program& d = w.device;
  d.local = pt::parse(replaced(std::string(local), "f32", element), d.mesh);
  w.error.record(w.source.error);
  w.error.record(d.local.error);
  if (!w.error && (static_cast<int>(c.inputs.size()) != d.local.input_count() ||
                   static_cast<int>(c.outputs.size()) != d.local.output_count() ||
                   w.source.input_count() != d.local.input_count() ||
                   w.source.output_count() != d.local.output_count()))
    w.error.record("practice", "numbers of inputs and outputs differ");
  if (w.error) return w;
  for (int i = 0; i < w.source.input_count(); ++i) d.input_types.push_back(w.source.input_type(i));
  for (int i = 0; i < w.source.output_count(); ++i)
    d.output_types.push_back(w.source.output_type(i));
  d.inputs = layouts_of(
      c.inputs, d.mesh, d.input_types, [&](int i) { return d.local.input_type(i); }, w.error);
  d.outputs = layouts_of(
      c.outputs, d.mesh, d.output_types, [&](int i) { return d.local.output_type(i); }, w.error);
  return w;
}

}  // namespace practice
