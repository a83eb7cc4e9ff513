#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ingest/torch_trace/event_text.h"
#include "model/event.h"

namespace lockstep::ingest {

/// True for operators whose shapes are kept: matrix products, convolutions and attention, forward and backward. Those
/// that only call such an operator (aten::linear, aten::matmul, aten::scaled_dot_product_attention) are not: the work
/// would be counted twice. Source: docs/metrics.md#flops.
bool IsMatrixOperator(std::string_view name);

/// Fills dims, types and, where they matter, concrete values from the args. False when the event has no "Input Dims"
/// (the profiler ran without record_shapes). `intern` decodes and interns raw text.
bool ReadShapeArgs(const std::vector<Field>& fields, std::string_view name,
                   const std::function<NameId(std::string_view)>& intern, model::OperatorShape* shape);

}  // namespace lockstep::ingest
