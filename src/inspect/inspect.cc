#include "inspect/inspect.h"
