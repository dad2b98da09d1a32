// Calls of functions, as the ABI has them: arguments in registers or on the stack, structs by value, shared
// libraries.
#include "operation.h"

#include "library.h"

// Of external linkage, and opaque to the caller: otherwise gcc gives a function of the same file arguments in
// registers, in i386 too, and leaves the ABI aside.
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

long micro_nothing(long value);
long micro_six(long a, long b, long c, long d, long e, long f);

// The empty assembly keeps the compiler from seeing that the function has no effect.
APART long micro_nothing(long value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

APART long micro_six(long a, long b, long c, long d, long e, long f) {
    __asm__ volatile("" : "+r"(a));
    return a + b + c + d + e + f;
}

// Two registers in the 64-bit ABIs, the stack in i386.
struct of_16 {
    int all[4];
};
struct of_64 {
    int all[16];
};

int micro_pass_16(struct of_16 value);
int micro_pass_64(struct of_64 value);
struct of_64 micro_return_64(int value);

APART int micro_pass_16(struct of_16 value) {
    __asm__ volatile("" : : "r"(&value) : "memory");
    return value.all[0] + value.all[3];
}

APART int micro_pass_64(struct of_64 value) {
    __asm__ volatile("" : : "r"(&value) : "memory");
    return value.all[0] + value.all[15];
}

APART struct of_64 micro_return_64(int value) {
    struct of_64 made = {{0}};
    made.all[0] = made.all[15] = value;
    __asm__ volatile("" : : "r"(&made) : "memory");
    return made;
}

static volatile long result;
static volatile int seven = 7;
static struct of_16 small_value;
static struct of_64 large_value;
static long (*volatile pointer)(long) = micro_nothing;
static _Thread_local volatile long of_thread;

#define CALL(name, statement)                                                                                \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        long value = 1;                                                                                      \
        REPEAT { TIMES4(statement;) }                                                                        \
        result = value;                                                                                      \
    }                                                                                                        \
    const struct operation operation_##name = {#name, micro_##name, 4, NULL, NULL, NULL, 0};

CALL(call, value = micro_nothing(value))
CALL(call_6, value = micro_six(value, 2, 3, 4, 5, 6))
CALL(call_indirect, value = pointer(value))
CALL(call_plt, value = micro_library(value))
CALL(struct_16, value += micro_pass_16(small_value))
CALL(struct_64, value += micro_pass_64(large_value))
CALL(struct_return, large_value = micro_return_64(seven))
CALL(thread_local, of_thread = of_thread + value)
