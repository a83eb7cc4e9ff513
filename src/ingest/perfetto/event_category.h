#pragma once

#include <string_view>

#include "ingest/perfetto/annotations.h"
#include "model/event.h"

namespace lockstep::ingest::perfetto {

/// Category of a slice whose producer wrote none, from its name and args: PyTorch's exporter leaves them out.
/// Runtime and driver calls carry "cbid" or a name that begins with cuda, hip, cu and a capital; Python frames "Python
/// id"; synchronisations "cuda_sync_kind"; the profiler's own work lies on a track named "Overhead". What is left is an
/// operator, or an annotation where the name says so (ProfilerStep#N, Optimizer..., nccl:...).
model::Category GuessCategory(std::string_view name, const Annotations& args, std::string_view track_name);

/// Category of a GPU render stage, from its stage's name.
model::Category CategoryOfStage(std::string_view stage);

}  // namespace lockstep::ingest::perfetto
