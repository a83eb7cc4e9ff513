#include "ingest/nccl/ras_report.h"
