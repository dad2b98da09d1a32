// The program that the operation `exec` starts: of the variant's own ABI, and it does nothing.
int main(void) { return 0; }
