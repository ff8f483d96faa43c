/// Appends ops to a program, checking each against its shape rule.
#pragma once

#include <initializer_list>
#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace separate {
value_id emit(builder& b, const op_def& def, span<const value_id> operands,
              span<const std::int64_t> attrs, const tensor_type& declared, vec<program>&& regions);
value_id scalar(builder& b, const op_def& constant, dtype t, std::int64_t bits);
value_id take(builder& b, const builder* from, const op_def& parameter, value_id v);
void destroy(builder& b);
}  // namespace separate

/// Builds a program op by op.
///
/// After an error (`failed()`), every call returns -1 and changes nothing, so one mistake gives one
/// error.
///
/// A nested program has its own builder. When the nested program uses a value of an enclosing
/// program, that value becomes an input of the nested program and (see `captures`) an operand of
/// the enclosing op.
class builder {
 public:
  constexpr builder() = default;
  constexpr ~builder() {
    for (builder* r : regions_) delete r;
  }
  builder(const builder&) = delete;
  builder& operator=(const builder&) = delete;

  program p;

  /// True after an error.
  constexpr bool failed() const { return p.error.is_set; }
  /// Returns the type of a value; a default type for the result of a failed call.
  constexpr const tensor_type& type(value_id v) const { return v < 0 ? no_type_ : p.types[v]; }

  constexpr value_id emit(const op_def& def, std::initializer_list<value_id> operands,
                          std::initializer_list<std::int64_t> attrs = {},
                          const tensor_type& declared = {}) {
    return emit(def, span<const value_id>(operands.begin(), operands.size()),
                span<const std::int64_t>(attrs.begin(), attrs.size()), declared);
  }
  /// Appends an op and returns its first result; its other results are the next values. `declared`
  /// is the result type that the caller wants, for ops whose operands do not determine it.
  ///
  /// Errors    P017 number of operands, P018 programs nested too deeply, S100 rank too large, S116
  ///           negative extent, S118 too many elements, and the errors of the op's shape rule
  constexpr value_id emit(const op_def& def, span<const value_id> operands,
                          span<const std::int64_t> attrs, const tensor_type& declared = {},
                          vec<program>&& regions = {}) {
    PARTITA_RETURN(append(def, operands, attrs, declared, static_cast<vec<program>&&>(regions)),
                   separate::emit(*this, def, operands, attrs, declared,
                                  static_cast<vec<program>&&>(regions)));
  }
  /// Implements `emit`.
  constexpr value_id append(const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& declared,
                            vec<program>&& regions) {
    // (Few function calls: every op of a trace goes through here.)
    if (p.error.is_set) return -1;
    const value_id* const values = operands.data();
    const int count = static_cast<int>(operands.size());
    if (!regions.empty()) check_regions(def, regions);
    if (def.operand_count >= 0 && def.operand_count != count)
      p.error.record("P017", def.name, ": ", count, " operands are given; ", def.operand_count,
                     def.operand_count == 1 ? " is" : " are", " needed");
    if (p.error.is_set) return -1;
    scratch_.clear();
    const tensor_type* const types = p.types.data();
    for (int i = 0; i < count; ++i) {
      if (values[i] < 0) return -1;
      scratch_.push_back(types[values[i]]);
    }
    infer_context c;
    c.operands = {scratch_.data(), static_cast<std::size_t>(count)};
    c.attrs = attrs;
    c.declared = declared;
    if (!regions.empty()) c.regions = {regions.data(), regions.size()};
    def.infer(c);
    check_result(c, def, c.result);
    const bool more = !c.more.empty();
    if (more)
      for (const auto& t : c.more) check_result(c, def, t);
    if (c.error.is_set) {
      p.error.record(c.error);
      return -1;
    }
    op_node n;
    n.def = &def;
    if (added_)
      n.marks = added_marks_;
    else
      n.marks = {new_number(), origin_, transposed_, false};
    p.append_op(n, operands, attrs);
    const value_id v = p.append_result(c.result);
    if (more)
      for (const auto& t : c.more) p.append_result(t);
    if (!regions.empty())
      for (auto& r : regions) p.append_region(static_cast<program&&>(r));
    return v;
  }

  /// Returns a rank-0 constant; equal constants share one value.
  constexpr value_id scalar(const op_def& constant, dtype t, std::int64_t bits) {
    if (failed()) return -1;
    const auto hash = [](dtype e, std::int64_t b) {
      return hash_of(static_cast<std::uint64_t>(b) + static_cast<std::uint64_t>(e));
    };
    const int known = scalar_places_.find(
        hash(t, bits), [&](int i) { return scalars_[i].element == t && scalars_[i].bits == bits; });
    if (known >= 0) return scalars_[known].value;
    const value_id v = emit(constant, {}, {bits}, tensor_type{t, {}});
    if (v >= 0) {
      p.ops.back().marks.origin = -1;
      p.ops.back().marks.transposed = 0;
      scalars_.push_back({t, bits, v});
      scalar_places_.insert(static_cast<int>(scalars_.size()) - 1,
                            [&](int i) { return hash(scalars_[i].element, scalars_[i].bits); });
    }
    return v;
  }

  /// Names the op that was appended last (a parameter or tag).
  constexpr void name_last(std::string_view name) {
    if (!failed()) p.ops.back().name = p.intern(name);
  }

  /// Returns the innermost program under construction: this one, or one nested in the same program.
  constexpr builder& active() {
    builder* root = this;
    while (root->parent_ != nullptr) root = root->parent_;
    return root->active_ != nullptr ? *root->active_ : *root;
  }
  /// Starts a nested program and makes its builder the active one until leave_region. The builder
  /// lives as long as this one.
  constexpr builder& open_region() {
    builder* r = new builder;
    r->parent_ = this;
    r->dynamic_extents_ = dynamic_extents_;
    r->number_with(*this);
    regions_.push_back(r);
    activate(r);
    return *r;
  }
  /// Makes the enclosing program the active one again.
  constexpr void leave_region(builder& r) { activate(r.parent_); }
  /// Ends a nested program. Nothing may be added to it afterwards; its error becomes an error of
  /// this program.
  constexpr void close_region(builder& r) {
    r.closed_ = true;
    p.error.record(r.p.error);
  }
  constexpr bool closed() const { return closed_; }
  constexpr builder* parent() const { return parent_; }
  /// True if this builder is `other`, or nested in it at any depth.
  constexpr bool within(const builder* other) const {
    for (const builder* b = this; b != nullptr; b = b->parent_)
      if (b == other) return true;
    return false;
  }
  /// A value of the enclosing program, and the input of this program that represents it.
  struct capture {
    value_id outer = -1, inner = -1;
  };
  /// Returns the inputs that this nested program takes from its enclosing program, in order of
  /// first use.
  constexpr vec<capture> captures() const {
    vec<char> is_input(p.types.size(), 0);
    for (value_id v : p.inputs) is_input[v] = 1;
    vec<capture> list;
    for (const auto& c : captures_)
      if (c.inner >= 0 && is_input[c.inner]) list.push_back(c);
    return list;
  }
  /// Returns value `v` of `from` (this program or one that encloses it) as a value of this program.
  /// A value whose producer has no operands (a constant, an iota) is computed again; any other
  /// value becomes an input.
  constexpr value_id take(const builder* from, const op_def& parameter, value_id v) {
    if (from == this || failed() || v < 0) return v;
    const value_id outer = parent_->take(from, parameter, v);
    const auto hash = [](value_id each) { return hash_of(static_cast<std::uint64_t>(each)); };
    const int known =
        capture_places_.find(hash(outer), [&](int i) { return captures_[i].outer == outer; });
    if (known >= 0) return captures_[known].inner;
    const program& q = parent_->p;
    if (outer < 0 || parent_->failed()) return -1;
    const op_node& made_by = q.op(q.producer(outer));
    const bool made_anew = made_by.operand_count == 0 && made_by.region_count == 0 &&
                           !q.is(q.producer(outer), parameter.role);
    const value_id inner = made_anew
                               ? emit(*made_by.def, {}, q.attrs(q.producer(outer)), q.type(outer))
                               : emit(parameter, {}, {}, tensor_type(q.type(outer)));
    if (inner < 0) return -1;
    captures_.push_back({outer, inner});
    capture_places_.insert(static_cast<int>(captures_.size()) - 1,
                           [&](int i) { return hash(captures_[i].outer); });
    if (!made_anew) p.inputs.push_back(inner);
    return inner;
  }

  /// Permits extents that are `dyn`, for shape rules on static types.
  constexpr void allow_dynamic_extents() { dynamic_extents_ = true; }

  /// Marks the ops emitted from now on as derivatives of op `origin`, given by its source number.
  constexpr void set_origin(int origin, int transposed) {
    origin_ = origin;
    transposed_ = transposed;
    origin_scope_ = numbers().p.scopes.of(origin);
    origin_place_ = numbers().p.scopes.place_of(origin);
  }
  /// Returns the named part of the program that the origin belongs to, or -1. If an op adds up
  /// derivatives of several ops, the caller sets the innermost part that contains all of them.
  constexpr int origin_scope() const { return origin_scope_; }
  constexpr void set_origin_scope(int scope) { origin_scope_ = scope; }
  constexpr const scope_list& scopes() { return numbers().p.scopes; }
  /// Puts the ops emitted from now on, in nested programs too, into a named part of the program
  /// until leave_scope. (A derivative belongs to the part of its origin instead.)
  constexpr void enter_scope(std::string_view name) {
    builder& all = numbers();
    all.scope_ = all.p.scopes.open(name, all.scope_);
  }
  constexpr void leave_scope() {
    builder& all = numbers();
    all.scope_ = all.p.scopes.outer(all.scope_);
  }
  /// Enters a place, as enter_scope enters a part; only messages show places (see scope_list). An
  /// error names the place in which it was made.
  constexpr void enter_place(std::string_view name, const char* file = nullptr, int line = 0) {
    builder& all = numbers();
    all.add_place_to_error();
    all.place_ = all.p.scopes.open_place(name, all.place_, file, line);
  }
  constexpr void leave_place() {
    builder& all = numbers();
    all.add_place_to_error();
    all.place_ = all.p.scopes.outer_place(all.place_);
  }
  /// Returns the place of the origin, or -1; see origin_scope.
  constexpr int origin_place() const { return origin_place_; }
  constexpr void set_origin_place(int place) { origin_place_ = place; }
  /// Puts the op with this number into a part with this name, inside the part that it is in.
  constexpr void name_op(int number, std::string_view name) {
    scope_list& scopes = numbers().p.scopes;
    scopes.put(number, scopes.open(name, scopes.of(number)));
  }
  /// Records that the program contains an op that is removed when the trace ends, see
  /// op/custom_vjp.hpp.
  constexpr void has_custom_vjp() { numbers().custom_vjps_ = true; }
  constexpr bool any_custom_vjp() const { return custom_vjps_; }
  /// Gives the ops emitted from now on the marks of the op that a pass adds them for.
  constexpr void add_for(const op_marks& marks) {
    added_marks_ = marks;
    added_ = true;
  }
  /// Shares the numbering of ops with another builder, which must outlive this one: for programs
  /// nested in its program. Ops emitted here have the origin that the other builder has now.
  constexpr void number_with(builder& other) {
    numbers_ = &other.numbers();
    origin_ = other.origin_;
    transposed_ = other.transposed_;
    origin_scope_ = other.origin_scope_;
    origin_place_ = other.origin_place_;
  }

 private:
  struct cached_scalar {
    dtype element;
    std::int64_t bits;
    value_id value;
  };
  constexpr void check_regions(const op_def& def, const vec<program>& regions) {
    for (const auto& r : regions) {
      p.error.record(r.error);
      if (r.nesting >= max_nesting)
        p.error.record("P018", def.name, ": programs are nested more than ", max_nesting, " deep");
    }
  }
  constexpr void check_result(infer_context& c, const op_def& def, const tensor_type& t) const {
    if (c.error.is_set) return;
    bool usual = t.shape.rank <= max_rank;
    for (int i = 0; usual && i < t.shape.rank; ++i) usual = t.shape.extents[i] >= 0;
    if (usual && t.shape.fits()) return;
    refuse_result(c, def, t);
  }
  constexpr void refuse_result(infer_context& c, const op_def& def, const tensor_type& t) const {
    if (t.shape.rank > max_rank)
      return c.fail("S100", def.name, ": the result has rank ", t.shape.rank, "; at most ",
                    max_rank, " is supported");
    for (std::int64_t extent : t.shape)
      if (extent < 0 && !(dynamic_extents_ && extent == dyn))
        return c.fail("S116", def.name, ": the result has shape ", t.shape,
                      "; extents are 0 or above");
    if (!t.shape.fits() && !(dynamic_extents_ && inherits_size(c, def)))
      c.fail("S118", def.name, ": ", too_many_elements(t));
  }

  /// True if an operand (or, for static types, an input) already has too many elements. Then
  /// `trace` reports the error, once.
  constexpr bool inherits_size(const infer_context& c, const op_def& def) const {
    bool inherits = def.role == op_role::parameter;
    for (const auto& t : c.operands) inherits = inherits || !t.shape.fits();
    return inherits;
  }

  constexpr void activate(builder* b) {
    builder* root = this;
    while (root->parent_ != nullptr) root = root->parent_;
    root->active_ = b;
  }

  constexpr int new_number() {
    builder& all = numbers();
    const int scope = origin_scope_ >= 0 ? origin_scope_ : all.scope_;
    if (scope >= 0) all.p.scopes.put(all.next_, scope);
    const int place = origin_place_ >= 0 ? origin_place_ : all.place_;
    if (place >= 0) all.p.scopes.put_place(all.next_, place);
    return all.next_++;
  }
  /// Adds the current place to the error message, once. After an error nothing is appended, so the
  /// current place is still the one where the error was made.
  constexpr void add_place_to_error() {
    failure& error = active().p.error;
    if (error_has_place_ || !error.is_set) return;
    error_has_place_ = true;
    const text where = p.scopes.path_of(p.scopes.around(place_, error.message));
    const text line = p.scopes.line_of(place_);
    if (!where.empty())
      error.set(concat(error.message, " (in ", where, line.empty() ? "" : ", ", line, ')'));
  }
  constexpr builder& numbers() { return numbers_ != nullptr ? *numbers_ : *this; }

  builder* parent_ = nullptr;
  builder* numbers_ = nullptr;  ///< the builder that numbers the ops; null if it is this one
  int next_ = 0;
  /// Of the builder that numbers the ops: the current part and place.
  int scope_ = -1, place_ = -1;
  bool added_ = false, custom_vjps_ = false, error_has_place_ = false;
  op_marks added_marks_;
  builder* active_ = nullptr;  ///< of the outermost builder
  vec<builder*> regions_;
  vec<capture> captures_;
  place_table capture_places_, scalar_places_;
  bool closed_ = false;
  tensor_type no_type_;
  vec<tensor_type> scratch_;
  vec<cached_scalar> scalars_;
  bool dynamic_extents_ = false;
  op_id origin_ = -1;
  int transposed_ = 0, origin_scope_ = -1, origin_place_ = -1;
};

}  // namespace partita
