// Compiles in both versions: the check must report that the wrong one is accepted.
int main() {}
