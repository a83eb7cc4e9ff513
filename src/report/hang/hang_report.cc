#include "report/hang/hang_report.h"
