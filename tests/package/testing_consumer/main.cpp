// A user's test of a route, built against the installed package.
int main() { return 0; }
