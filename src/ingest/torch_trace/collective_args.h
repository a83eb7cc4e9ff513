#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/torch_trace/event_text.h"
#include "model/event.h"

namespace lockstep::ingest {

/// Fills the metadata of `record` from the args of a collective's event: the old and the new argument sets of Kineto
/// for kernels and record_param_comms; "Input Dims" and "Input type" for ranges named "nccl:...". `intern` decodes and
/// interns raw text. Returns false when the event says nothing of a collective. Format:
/// docs/formats/torch-trace.md#collectives.
bool ReadCollectiveArgs(const std::vector<Field>& fields, model::Category category, std::string_view event_name,
                        const std::function<NameId(std::string_view)>& intern, model::CollectiveRecord* record);

/// Elements of all tensors in "Input Dims" text such as "[[394241], [2, 3]]": the sum of the products; scalars ("[]")
/// count 1 only when nested lists name tensors. Absent when the text is not a list of lists of integers.
std::optional<int64_t> CountElements(std::string_view dims);

}  // namespace lockstep::ingest
