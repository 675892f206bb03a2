// One of two units that include every public header.
#include "all_headers.hpp"

int second() { return 0; }
