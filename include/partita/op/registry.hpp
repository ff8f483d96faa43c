/// The ops of the language. A list for those who iterate (tests, parsers); the engine itself finds
/// an op through the definition that each node points to.
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/concatenate.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/convolution.hpp>
#include <partita/op/cumsum.hpp>
#include <partita/op/dot_general.hpp>
#include <partita/op/gather.hpp>
#include <partita/op/identity.hpp>
#include <partita/op/math.hpp>
#include <partita/op/reduce.hpp>
#include <partita/op/reduce_window.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/select.hpp>
#include <partita/op/select_and_scatter.hpp>
#include <partita/op/slice.hpp>
#include <partita/op/transpose.hpp>

namespace partita {

inline constexpr const op_def* registry[] = {
    &def<op::parameter>,
    &def<op::tag>,
    &def<op::tiling>,
    &def<op::stop_gradient>,
    &def<op::constant>,
    &def<op::iota>,
    &def<op::add>,
    &def<op::subtract>,
    &def<op::multiply>,
    &def<op::divide>,
    &def<op::maximum>,
    &def<op::minimum>,
    &def<op::negate>,
    &def<op::exp>,
    &def<op::log>,
    &def<op::tanh>,
    &def<op::erf>,
    &def<op::sqrt>,
    &def<op::rsqrt>,
    &def<op::compare>,
    &def<op::select>,
    &def<op::convert>,
    &def<op::broadcast_in_dim>,
    &def<op::reduce>,
    &def<op::reduce_window>,
    &def<op::select_and_scatter>,
    &def<op::select_and_gather>,
    &def<op::cumsum>,
    &def<op::transpose>,
    &def<op::reshape>,
    &def<op::dot_general>,
    &def<op::convolution>,
    &def<op::gather>,
    &def<op::scatter_add>,
    &def<op::concatenate>,
    &def<op::slice>,
};

}  // namespace partita
