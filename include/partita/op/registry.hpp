/// The list of all ops, for tests and parsers. The engine itself finds an op through the definition
/// that each node points to.
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/bitcast_convert.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/call.hpp>
#include <partita/op/case_of.hpp>
#include <partita/op/concatenate.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/convolution.hpp>
#include <partita/op/cumsum.hpp>
#include <partita/op/dot_general.hpp>
#include <partita/op/dynamic_slice.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/fold.hpp>
#include <partita/op/gather.hpp>
#include <partita/op/identity.hpp>
#include <partita/op/linalg.hpp>
#include <partita/op/literal.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/math.hpp>
#include <partita/op/optimization_barrier.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/power.hpp>
#include <partita/op/random.hpp>
#include <partita/op/reduce.hpp>
#include <partita/op/reduce_precision.hpp>
#include <partita/op/reduce_window.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/reverse.hpp>
#include <partita/op/roll.hpp>
#include <partita/op/rounding.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/scatter.hpp>
#include <partita/op/select.hpp>
#include <partita/op/select_and_scatter.hpp>
#include <partita/op/shift.hpp>
#include <partita/op/shifts.hpp>
#include <partita/op/slice.hpp>
#include <partita/op/sort.hpp>
#include <partita/op/special.hpp>
#include <partita/op/transpose.hpp>
#include <partita/op/trigonometry.hpp>
#include <partita/op/while_loop.hpp>

namespace partita {

inline constexpr const op_def* registry[] = {
    &def<op::parameter>,
    &def<op::tag>,
    &def<op::tiling>,
    &def<op::stop_gradient>,
    &def<op::place>,
    &def<op::constant>,
    &def<op::literal>,
    &def<op::iota>,
    &def<op::add>,
    &def<op::subtract>,
    &def<op::multiply>,
    &def<op::divide>,
    &def<op::remainder>,
    &def<op::negate>,
    &def<op::maximum>,
    &def<op::minimum>,
    &def<op::clamp>,
    &def<op::abs>,
    &def<op::sign>,
    &def<op::floor>,
    &def<op::ceil>,
    &def<op::round_nearest_even>,
    &def<op::round_nearest_away>,
    &def<op::exp>,
    &def<op::expm1>,
    &def<op::log>,
    &def<op::log1p>,
    &def<op::logistic>,
    &def<op::tanh>,
    &def<op::erf>,
    &def<op::erfc>,
    &def<op::erf_inv>,
    &def<op::lgamma>,
    &def<op::digamma>,
    &def<op::power>,
    &def<op::sqrt>,
    &def<op::rsqrt>,
    &def<op::cbrt>,
    &def<op::sine>,
    &def<op::cosine>,
    &def<op::tan>,
    &def<op::atan2>,
    &def<op::logical_and>,
    &def<op::logical_or>,
    &def<op::logical_xor>,
    &def<op::logical_not>,
    &def<op::popcnt>,
    &def<op::count_leading_zeros>,
    &def<op::shift_left>,
    &def<op::shift_right_arithmetic>,
    &def<op::shift_right_logical>,
    &def<op::compare>,
    &def<op::is_finite>,
    &def<op::select>,
    &def<op::random_bits>,
    &def<op::convert>,
    &def<op::bitcast_convert>,
    &def<op::reduce_precision>,
    &def<op::broadcast_in_dim>,
    &def<op::reduce>,
    &def<op::reduce_window>,
    &def<op::select_and_scatter>,
    &def<op::select_and_gather>,
    &def<op::cumsum>,
    &def<op::fold>,
    &def<op::transpose>,
    &def<op::reshape>,
    &def<op::dot_general>,
    &def<op::convolution>,
    &def<op::gather>,
    &def<op::scatter>,
    &def<op::concatenate>,
    &def<op::slice>,
    &def<op::sort>,
    &def<op::top_k>,
    &def<op::while_loop>,
    &def<op::scan>,
    &def<op::case_of>,
    &def<op::call>,
    &def<op::optimization_barrier>,
    &def<op::cholesky>,
    &def<op::triangular_solve>,
    &def<op::pad>,
    &def<op::reverse>,
    &def<op::roll>,
    &def<op::dynamic_slice>,
    &def<op::dynamic_update_slice>,
};

}  // namespace partita
