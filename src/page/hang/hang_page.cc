#include "page/hang/hang_page.h"
