#include "ingest/evidence/evidence_files.h"
