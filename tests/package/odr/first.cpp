// One of two units that include every public header.
#include "all_headers.hpp"

int second();

int main() { return second(); }
