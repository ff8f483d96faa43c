/// The ops that a function of scalars may use (see scalar_function).
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/math.hpp>
#include <partita/op/power.hpp>
#include <partita/op/reduce_precision.hpp>
#include <partita/op/rounding.hpp>
#include <partita/op/select.hpp>
#include <partita/op/shift.hpp>
#include <partita/op/special.hpp>
#include <partita/op/trigonometry.hpp>

namespace partita::op {

/// (Indices into this list are attributes, so new ops go to the end.)
inline constexpr const op_def* step_ops[] = {
    &def<constant>,
    &def<convert>,
    &def<compare>,
    &def<select>,
    &def<add>,
    &def<subtract>,
    &def<multiply>,
    &def<divide>,
    &def<maximum>,
    &def<minimum>,
    &def<negate>,
    &def<abs>,
    &def<exp>,
    &def<log>,
    &def<log1p>,
    &def<expm1>,
    &def<sqrt>,
    &def<rsqrt>,
    &def<tanh>,
    &def<logistic>,
    &def<power>,
    &def<logical_and>,
    &def<logical_or>,
    &def<logical_xor>,
    &def<logical_not>,
    &def<remainder>,
    &def<floor>,
    &def<ceil>,
    &def<sign>,
    &def<round_nearest_even>,
    &def<round_nearest_away>,
    &def<sine>,
    &def<cosine>,
    &def<tan>,
    &def<atan2>,
    &def<erf>,
    &def<erfc>,
    &def<erf_inv>,
    &def<lgamma>,
    &def<digamma>,
    &def<cbrt>,
    &def<clamp>,
    &def<is_finite>,
    &def<popcnt>,
    &def<count_leading_zeros>,
    &def<shift_left>,
    &def<shift_right_arithmetic>,
    &def<shift_right_logical>,
    &def<reduce_precision>,
};

}  // namespace partita::op
