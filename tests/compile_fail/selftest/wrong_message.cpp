// Refused with another message than the expected one.
#ifndef SHOULD_COMPILE
#error "another message"
#endif
int main() {}
