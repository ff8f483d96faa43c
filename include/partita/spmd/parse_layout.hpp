/// Parses layouts.
#pragma once

#include <string_view>

#include <partita/ir/axis_set.hpp>
#include <partita/ir/layout.hpp>
#include <partita/ir/sub_axis_text.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

namespace spmd_detail {

/// Recursive-descent parser with one function per production. After an error every function returns
/// at once.
///
/// ```
/// layout     [dimension, ...]
/// dimension  {axis, ...}          major to minor
/// axis       "B" or "A":(1)4
/// ```
class layout_parser {
 public:
  constexpr layout_parser(std::string_view in, const mesh& m, const shape& global, failure& error)
      : in_(in), mesh_(m), global_(global), error_(error) {}

  constexpr layout run() {
    layout l;
    int rank = 0;
    expect("[");
    while (!error_ && !accept("]")) {
      if (rank > 0) expect(",");
      dimension(l, rank++);
    }
    if (blanks(); !error_ && !in_.done()) expected("the end of the text");
    if (!error_ && rank != global_.rank)
      error_.record("P022", "layout ", in_.all(), ": ", rank,
                    rank == 1 ? " dimension" : " dimensions", "; the tensor has rank ",
                    global_.rank);
    if (!error_) divides(l);
    return error_ ? layout{} : l;
  }

 private:
  scanner in_;
  const mesh& mesh_;
  const shape& global_;
  failure& error_;
  axis_set seen_;

  constexpr void blanks() {
    in_.take_while([](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
  }
  constexpr bool accept(std::string_view token) {
    blanks();
    return !error_ && in_.accept(token);
  }
  constexpr void expected(std::string_view what) {
    if (in_.done())
      error_.record("P019", "layout ", in_.all(), ": ", what,
                    " expected, found the end of the text");
    else
      error_.record("P019", "layout ", in_.all(), ": ", what, " expected, found ", in_.rest());
  }
  constexpr void expect(std::string_view token) {
    if (!accept(token)) expected(token);
  }

  constexpr void dimension(layout& l, int dim) {
    expect("{");
    for (bool first = true; !error_ && !accept("}"); first = false) {
      if (!first) expect(",");
      for (int a : axis()) {
        if (!error_ && seen_.contains(a))
          error_.record("P021", "layout ", in_.all(), ": axis \"", mesh_.name(a),
                        "\" occurs twice");
        seen_.insert(a);
        if (!error_) l.push_back(a, dim);
      }
    }
  }
  /// Reads an axis; returns the axes of the mesh that it consists of.
  constexpr axis_list axis() {
    blanks();
    const scanner before = in_;
    if (!error_ && !in_.accept("\"")) expected("an axis in quotes");
    const std::string_view name = in_.take_while([](char c) { return c != '"'; });
    if (!error_ && mesh_.find(name) < 0)
      error_.record("P020", "layout ", in_.all(), ": the mesh has no axis \"", name, "\"; ",
                    known_names(name, mesh_.names()));
    if (error_) return {};
    in_ = before;
    sub_axis s;
    std::int64_t major = 0;
    if (!read_sub_axis(in_, mesh_, s) || mesh_.cut_by(s, major) >= 0) {
      error_.record("P020", "layout ", in_.all(), ": axis \"", name, "\" of size ",
                    mesh_.whole_size(mesh_.find(name)),
                    " has no such part; use a mesh that is split as in the program");
      return {};
    }
    return mesh_.parts_of(s);
  }
  constexpr void divides(const layout& l) {
    for (int d = 0; d < global_.rank; ++d)
      if (global_[d] % l.pieces(mesh_, d) != 0)
        error_.record("P023", "layout ", in_.all(), ": dimension ", d, " has size ", global_[d],
                      "; it is cut into ", l.pieces(mesh_, d),
                      " shards, which do not divide it; give the size with padding");
  }
};

}  // namespace spmd_detail

/// Parses a layout as printed by `print_layout`, for a tensor of global shape `global`, including
/// padding. Blanks are allowed between tokens.
///
/// Law       parse_layout(print_layout(l, s.rank, m), m, s, error) = l
/// Errors    P019 unexpected text, P020 unknown axis, or a part of an axis that the mesh does not
///           have, P021 axis used twice, P022 rank differs, P023 the axes do not divide the
///           dimension
constexpr layout parse_layout(std::string_view in, const mesh& m, const shape& global,
                              failure& error) {
  return spmd_detail::layout_parser(in, m, global, error).run();
}

}  // namespace partita
