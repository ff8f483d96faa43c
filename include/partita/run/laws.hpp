/// Checks that an op keeps its laws, one call for each law: for tests of user-defined ops.
///
/// ```cpp
/// check_laws(def<rope>, {{dtype::f32, {4, 6}}, {dtype::f32, {6}}});
/// check_derivative(def<rope>, {{dtype::f64, {4, 6}}, {dtype::f64, {6}}});
/// ```
///
/// An op whose tile map breaks its law is reported with the entry, the shapes and the two values
/// that differ:
///
/// ```
/// L001 laws: center ([i, j]) -> ([i, j]) of (tensor<4x2xf64>) -> tensor<4x2xf64>: entry j over 2
/// slices: result (0, 0) is 1, the loop over slices gives 0
/// ```
#pragma once

#include <partita/run/check_derivative.hpp>
#include <partita/run/check_laws.hpp>
