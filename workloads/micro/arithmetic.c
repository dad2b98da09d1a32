// Arithmetic: chains in which each operation waits for the one before, so that a row is the operation's
// latency. A chain has 32 operations an iteration, which leaves the loop's own counting no share.
#include "operation.h"

// Operands that the compiler does not know.
static volatile uint32_t operand4 = 3;
static volatile uint64_t operand8 = 0x100000003;
static volatile double operand_double = 1.0000001;
static volatile uint64_t result8;
static volatile double result_double;

#define CHAIN(name, type, operand, keep, result, step)                                                       \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        type value = operand, by = operand;                                                                  \
        REPEAT { TIMES32(value = step; keep(value);) }                                                       \
        result = value;                                                                                      \
    }                                                                                                        \
    const struct operation operation_##name = {#name, micro_##name, 32, NULL, NULL, NULL, 0};

CHAIN(add4, uint32_t, operand4, KEEP4, result8, value + by)
CHAIN(add8, uint64_t, operand8, KEEP8, result8, value + by)
CHAIN(shift8, uint64_t, operand8, KEEP8, result8, value << (by & 63))
CHAIN(mul4, uint32_t, operand4, KEEP4, result8, value *by)
CHAIN(mul8, uint64_t, operand8, KEEP8, result8, value *by)
// The dividend stays large, so that the division is not a short one.
CHAIN(div4, uint32_t, operand4, KEEP4, result8, (value | 0x80000000u) / by)
CHAIN(div8, uint64_t, operand8, KEEP8, result8, (value | 0x8000000000000000u) / by)

CHAIN(addf, double, operand_double, KEEPF, result_double, value + by)
CHAIN(mulf, double, operand_double, KEEPF, result_double, value *by)
CHAIN(divf, double, operand_double, KEEPF, result_double, value / by)

// Known truths: 8 and 32 dependent multiplications in an iteration are one operation.
#define TRUTH(count, ...)                                                                                    \
    DECLARE(truth_##count);                                                                                  \
    LOOP(truth_##count) {                                                                                    \
        uint32_t value = operand4, by = operand4;                                                            \
        REPEAT{__VA_ARGS__} result8 = value;                                                                 \
    }                                                                                                        \
    const struct operation operation_truth_##count = {                                                       \
        "truth_" #count, micro_truth_##count, 1, NULL, NULL, NULL, 0};

#define MULTIPLY                                                                                             \
    value = value * by;                                                                                      \
    KEEP4(value);
#define TIMES8(...)                                                                                          \
    __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__
TRUTH(8, TIMES8(MULTIPLY))
TRUTH(32, TIMES32(MULTIPLY))

// Atomic operations on memory that no other thread uses.
static uint32_t shared4;
// Of 8 bytes also on i386, whose alignment for such a member is 4.
static _Alignas(8) uint64_t shared8;

#define ATOMIC(name, statement)                                                                              \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        REPEAT { TIMES4(statement;) }                                                                        \
    }                                                                                                        \
    const struct operation operation_##name = {#name, micro_##name, 4, NULL, NULL, NULL, 0};

ATOMIC(atomic_add4, __atomic_fetch_add(&shared4, operand4, __ATOMIC_SEQ_CST))
ATOMIC(atomic_add8, __atomic_fetch_add(&shared8, operand8, __ATOMIC_SEQ_CST))
// `expected` is what the last one found, so that each succeeds or the next one does.
static uint64_t expected;
ATOMIC(atomic_swap8,
       __atomic_compare_exchange_n(&shared8, &expected, expected + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
