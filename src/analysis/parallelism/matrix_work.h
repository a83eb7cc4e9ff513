#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::analysis {

/// What one call of a matrix operator computes and moves at least, from its shapes.
struct MatrixWork {
  int64_t flops = 0;  ///< A multiplication and an addition are two.
  int64_t bytes = 0;  ///< Operands and result, each once.
};

/// FLOPs and bytes of an operator of IsMatrixOperator's list. `dims`, `types` and `values` as in model::OperatorShape.
/// mm, bmm: 2 M N K each; addmm, baddbmm: M N more for the sum; convolution: 2 x outputs x (inputs per output);
/// convolution_backward: that for each gradient asked for; attention: 4 B H Nq Nk D, half where causal; its backward
/// 2.5 times as much. Absent when the shapes do not fit the operator or do not say enough.
/// Source: docs/metrics.md#flops.
std::optional<MatrixWork> MatrixWorkOf(std::string_view name, std::string_view dims, std::string_view types,
                                       std::string_view values);

/// Type of the factors: the first of `types` that is not of the addend. "c10::BFloat16"; empty when not recorded.
std::string_view FactorTypeOf(std::string_view name, std::string_view types);

}  // namespace lockstep::analysis
