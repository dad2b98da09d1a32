/* johansson-2006: a call through a pointer, and a constant of 64 bits. call-ppc64 and call-ppc are this file,
   built by powerpc64-linux-gnu-gcc and powerpc-linux-gnu-gcc 12 with -O2 -mcpu=powerpc{64,} -nostdlib -static
   -fno-asynchronous-unwind-tables -Wl,--build-id=none,-N -o call-ppc{64,} call.c */
typedef int (*function)(int);
struct node {
    struct node *next;
    long value;
    function call;
};
int through_pointer(function *called, int value) { return (*called)(value) + 1; }
long long constant(void) { return 0x123456789abcdef0LL; }
long sum(const struct node *first) {
    long all = 0;
    for (; first; first = first->next)
        all += first->value;
    return all;
}
double scale(double number, float other) { return number * 2.5 + other; }
void _start(void) {}
