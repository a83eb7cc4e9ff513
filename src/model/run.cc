#include "model/run.h"

namespace lockstep::model {

const char* RankSourceName(RankSource source) {
  switch (source) {
    case RankSource::kDistributedInfo: return "distributed_info";
    case RankSource::kFileName: return "file_name";
    case RankSource::kOrder: return "order";
  }
  return "order";
}

}  // namespace lockstep::model
