/// The ops that functions of scalars may be made of.
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/math.hpp>
#include <partita/op/power.hpp>
#include <partita/op/rounding.hpp>
#include <partita/op/select.hpp>

namespace partita::op {

/// (Their places are attributes: new ones go to the end.)
inline constexpr const op_def* step_ops[] = {
    &def<constant>,  &def<convert>,     &def<compare>,    &def<select>,      &def<add>,
    &def<subtract>,  &def<multiply>,    &def<divide>,     &def<maximum>,     &def<minimum>,
    &def<negate>,    &def<abs>,         &def<exp>,        &def<log>,         &def<log1p>,
    &def<expm1>,     &def<sqrt>,        &def<rsqrt>,      &def<tanh>,        &def<logistic>,
    &def<power>,     &def<logical_and>, &def<logical_or>, &def<logical_xor>, &def<logical_not>,
    &def<remainder>,
};

}  // namespace partita::op
