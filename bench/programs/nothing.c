/* Known truth: nothing. What a run of it costs is what starting a program costs. */
int main(void) { return 0; }
