#include "ingest/stacks/stacks.h"
