// expect: cannot (convert|initialize).*effect
//
// "Redis may have executed it" is not a yes or no: an effect does not turn into a bool.
#include <redoubt/core/error.hpp>

#ifdef SHOULD_COMPILE
bool const repeatable = redoubt::effect::none == redoubt::effect::unknown;
#else
bool const repeatable = redoubt::effect::none;
#endif

int main() { return repeatable ? 1 : 0; }
