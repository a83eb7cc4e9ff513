#include "ingest/rank_log/rank_log.h"
