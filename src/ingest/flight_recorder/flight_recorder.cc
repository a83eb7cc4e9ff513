#include "ingest/flight_recorder/flight_recorder.h"
