/// Building blocks of neural networks, as plain functions of tensors.
#pragma once

#include <partita/dsl/nn/activation.hpp>
#include <partita/dsl/nn/attention.hpp>
#include <partita/dsl/nn/convolution.hpp>
#include <partita/dsl/nn/dropout.hpp>
#include <partita/dsl/nn/initialize.hpp>
#include <partita/dsl/nn/kv_cache.hpp>
#include <partita/dsl/nn/linear.hpp>
#include <partita/dsl/nn/loss.hpp>
#include <partita/dsl/nn/normalization.hpp>
#include <partita/dsl/nn/rotary.hpp>
