// What an operation is, and what the files of operations share.
#ifndef MICRO_OPERATION_H
#define MICRO_OPERATION_H

#include <stddef.h>
#include <stdint.h>

// One row of the table.
struct operation {
    const char *name;
    // Makes so many iterations of the inner loop.
    void (*loop)(unsigned long iterations);
    // Operations in one iteration.
    unsigned per_iteration;
    // What is subtracted from the time of an operation; NULL: the empty loop, whose share is one iteration
    // (of the time of a chain, nothing).
    const struct operation *subtracted;
    // Iterations of `loop` are begun by this, and ended by that; either may be NULL. `prepare` returns NULL,
    // or why the operation cannot run here.
    const char *(*prepare)(void);
    void (*finish)(void);
    // The least time of a repetition in milliseconds; 0: the harness's own.
    unsigned repetition_ms;
};

// Every operation by its name in operations.def; each is defined in the file of its family.
#define OPERATION(name, family, noun) extern const struct operation operation_##name;
#include "operations.def"
#undef OPERATION

// Defines the inner loop of an operation: a function of its own, so that its instructions can be listed. A
// short loop that crosses a line of the instruction cache takes twice as long, by chance: the functions are
// aligned to one. The loop itself follows the function's first instructions, whose length differs by ABI.
#define LOOP(name) __attribute__((noinline, noclone, aligned(64))) void micro_##name(unsigned long iterations)
#if defined(__clang__)
#undef LOOP
#define LOOP(name) __attribute__((noinline, aligned(64))) void micro_##name(unsigned long iterations)
#endif
#define DECLARE(name) void micro_##name(unsigned long iterations)

// Repeats a statement.
#define TIMES4(...) __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__
#define TIMES32(...)                                                                                         \
    TIMES4(__VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__)

// The loop of every operation. The empty assembly keeps the compiler from joining or removing iterations.
#define REPEAT for (; iterations != 0; iterations--, barrier())
static inline __attribute__((always_inline)) void barrier(void) { __asm__ volatile("" ::: "memory"); }

// The compiler knows nothing of the value from here on, and must have computed it.
#define KEEP4(value) __asm__ volatile("" : "+r"(value))
#if defined(__x86_64__) || __SIZEOF_POINTER__ == 8
#define KEEP8(value) __asm__ volatile("" : "+r"(value))
#define KEEPF(value) __asm__ volatile("" : "+x"(value))
#else
// i386 computes in x87 or in SSE registers, as the options say.
#ifdef __SSE2_MATH__
#define KEEPF(value) __asm__ volatile("" : "+x"(value))
#else
#define KEEPF(value) __asm__ volatile("" : "+t"(value))
#endif
// A value in two registers.
#define KEEP8(value)                                                                                         \
    do {                                                                                                     \
        uint32_t low = (uint32_t)(value), high = (uint32_t)((value) >> 32);                                  \
        __asm__ volatile("" : "+r"(low), "+r"(high));                                                        \
        (value) = (uint64_t)high << 32 | low;                                                                \
    } while (0)
#endif

// Why the operation that is being made cannot go on; its loop returns then. NULL: it can.
extern const char *fault;
// Why a system call failed: "open: No such file or directory".
const char *failure(const char *call);
// The path of a file beside the program.
const char *beside(const char *name);

#endif
