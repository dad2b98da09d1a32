/*
 * The rules of the program's own unwind tables (.eh_frame): where the caller's registers are at a code
 * address. Each is decoded once and cached in sixteen bytes.
 *
 * Only two registers are followed, the stack and the frame pointer: GCC and Clang describe every call site
 * with these. Neither libunwind nor libgcc is needed, which may not exist for x32.
 */
#ifndef WIDTHWISE_HEAP_UNWIND_RULES_H
#define WIDTHWISE_HEAP_UNWIND_RULES_H

#include <stddef.h>
#include <stdint.h>

/* What a call pushes: x32's pointers are half of it. */
#ifdef __x86_64__
typedef uint64_t stack_word;
#else
typedef uint32_t stack_word;
#endif

enum rule_kind {
    RULE_NONE,   /* nothing is known: the walk is broken */
    RULE_END,    /* the outermost call */
    RULE_STACK,  /* the canonical frame address (CFA) is at an offset from the stack pointer */
    RULE_FRAME,  /* ... from the frame pointer */
    RULE_STORED, /* ... is stored at an offset from the frame pointer: a function that aligns its stack */
    RULE_SIGNAL, /* the kernel's frame: all is stored at offsets from the stack pointer */
    RULE_MODULE  /* no code address: the first byte of a module that was written */
};

#define SAME_FRAME INT16_MIN      /* the frame pointer is the caller's still */
#define FRAME_AT_ITSELF INT16_MAX /* the caller's is saved where the frame pointer points to */

/* How to get from a code address to its caller. Offsets in bytes. The return address lies just below the CFA.
 */
struct rule {
    uintptr_t code;
    int32_t cfa : 26;
    uint32_t kind : 6;
    int16_t
        frame; /* from the CFA (RULE_SIGNAL: from the stack pointer) to where the frame pointer is saved */
    int16_t address; /* of RULE_SIGNAL: from the stack pointer to the interrupted code address */
};

enum where { KEPT, AT_CFA, AT_REGISTER, LOST };

struct saved {
    enum where where;
    uint64_t base; /* of AT_REGISTER */
    int64_t offset;
};

struct unwind_state {
    uint64_t base;
    int64_t offset;
    int stored; /* the CFA is what is stored there */
    int known;
    struct saved frame, address, other;
};

#define REMEMBERED 8

/* What decoding needs to remember, kept off the program's stack. */
struct unwind_scratch {
    struct unwind_state state, initial, remembered[REMEMBERED];
};

/* Decodes the rule of the instruction at `code`; `header` is the .eh_frame_hdr of its module. */
struct rule unwind_rule(const uint8_t *header, uintptr_t code, struct unwind_scratch *scratch);

#endif
