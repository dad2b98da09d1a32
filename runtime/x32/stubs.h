/*
 * What a site looks like, and the code that takes its place. Pure: bytes in, bytes out.
 *
 * A: `mov $nr,%eax; syscall`, 5 (or 7) and 2 bytes. The move becomes a jump; the `syscall` stays, so that
 * a jump straight to it traps.
 *
 * B: `syscall; cmp $imm,%eax`, in glibc, where the number was loaded earlier. The jump covers 5 bytes of the
 * two, so the comparison is made in the stub. Code that jumps to the comparison itself would find the middle
 * of the jump. Its third and fourth byte are made those of a `syscall`, by the choice of where the jump goes;
 * that traps, and the runtime makes the comparison and goes on behind it. rcx and r11 are dead there, since
 * the call before the comparison changes them. Where only numbers with bit 30 trap (seccomp), or nothing does
 * (valgrind), the third byte is made 0xf4 (hlt), which faults; that ends a process with SIGSEGV blocked. A
 * thread that goes on at a comparison after a trap, or a handler, goes on behind it in the same way.
 *
 * C: `mov %r11,8(%rsp); syscall; ret`, musl's __syscall_cp_asm, for every call at which a thread can be
 * cancelled.
 *
 * D: `mov %edx,%eax; syscall; jmp`, glibc's _exit and the end of its threads, which call until they are gone.
 * The jump covers the `syscall` with its third and fourth byte, which are made those of a `syscall`, too:
 * another thread may be there, and glibc blocks SIGSEGV before a thread ends.
 */
#ifndef X32_STUBS_H
#define X32_STUBS_H

#include "code_writes.h"
#include "kernel.h"
#include "offsets.h"

enum pattern { PATTERN_NONE, PATTERN_MOVE, PATTERN_COMPARE, PATTERN_CANCEL, PATTERN_EXIT };

#define CALL_SIZE 2
#define JUMP_SIZE 5
#define LONG_MOVE_SIZE 7 /* of A, where it moves to rax */
/* Whether a `syscall` is there. */
static inline int is_call(const u8 *at) { return get16(at) == TRAP_CALL; }

/* Bytes that have to be known before and after a `syscall`. */
#define SITE_BEFORE 32
#define SITE_AFTER 8
#define LARGEST_STUB 128

struct site {
    u32 address; /* of the first byte that is replaced */
    u32 call;    /* of the `syscall` */
    u32 back;    /* where the program goes on */
    u32 number;  /* with bit 30; of B, the one it was first reached with; 0 where it is not known */
    u8 pattern;
    u8 replaced;       /* bytes: JUMP_SIZE or LONG_MOVE_SIZE */
    u8 compare_size;   /* of B */
    u8 between;        /* of A: bytes of instructions between the move and the `syscall` */
    u8 size;           /* bytes of the program that the stub stands for, from `address` */
    u8 made;           /* offset in the stub of its own `syscall`; 0 where it has none */
    u8 rest;           /* of B: offset of the comparison */
    u8 declined;       /* of B and C: offset of the way into the runtime; 0 where there is no other */
    u8 covers_by_call; /* of B: the jump's third and fourth byte are a `syscall`, and not hlt */
    u8 bytes[SITE_BEFORE + CALL_SIZE + SITE_AFTER]; /* those that the stub stands for */
};

/* Recognises the site whose `syscall` is at `call`; `bytes` begin SITE_BEFORE before it. `number`: what was
 * in rax, or 0 where that is not known. */
enum pattern site_recognise(struct site *site, u32 call, const u8 bytes[SITE_BEFORE + CALL_SIZE + SITE_AFTER],
                            u32 number);

/* Writes a stub's code that will lie at `at`; its size. `direct`: calls that need no translation are made
 * there. */
enum direct {
    DIRECT_NEVER,
    DIRECT,
    DIRECT_COUNTED, /* and counted where the thread's GS block points to */
};
u32 stub_write(u8 code[LARGEST_STUB], u64 at, struct site *site, enum direct direct, u64 enter,
               const u64 *plain_calls);

/* Where its jump covers a second instruction, to which a thread may come, bytes of the jump's distance, from
 * the second on, are fixed (B, D). It is then one of 256 in a row, from `first` on, in each `unit`; a unit of
 * 0 means any. */
#define DISTANCES 256
struct distances {
    u64 first, unit;
};
static inline struct distances site_distances(const struct site *site) {
    switch (site->pattern) {
    case PATTERN_COMPARE:
        if (!site->covers_by_call) {
            return (struct distances){TRAP_BYTE << 8, 1 << 16};
        }
        /* fall through */
    case PATTERN_EXIT:
        return (struct distances){TRAP_CALL << 8, 1 << 24};
    default:
        return (struct distances){0, 0};
    }
}

/* What its first two bytes are while other threads may execute it and the others are written (code_writes.h).
 * Of B and D the program's own two, which are one instruction. Elsewhere a `syscall`: a thread that comes to
 * it traps, sleeps until the writing is over, and comes again (sites_was_held). That changes rcx and r11, so
 * there is none where an instruction before the site's own `syscall` may read them, nor where not every
 * number traps: `jmp .` is there, which a thread executes for the rest of its time slice if the one that
 * writes loses its CPU.
 *
 * To store a whole jump at once, where it lies in eight aligned bytes, would need nothing meanwhile. AMD
 * allows it (AMD64 volume 2, 7.6.1, asynchronous modification), but Intel wants every core that may execute
 * the code to be serialised first (volume 3, 9.1.3). */
u32 site_meanwhile(const struct site *site, int every_number_traps);

/* The comparison of B: its size, 0 where it is none; and the flags after it. */
#define LARGEST_COMPARE 6
u32 comparison_size(const u8 compare[LARGEST_COMPARE]);
u64 comparison_flags(const u8 compare[LARGEST_COMPARE], u64 rax, u64 flags);

/* Where in the program an instruction of a stub belongs: what a kernel would show there. `rax` becomes what
 * it would be there; `flags` are those the stub has left. */
u32 site_place(const struct site *site, u32 offset, u64 flags, u64 *rax);

/* Whether a jump among these bytes may lead to the one at `offset`. Where instructions begin is not known, so
 * some bytes that are none are taken for one. */
int is_jumped_to(const u8 *bytes, u32 size, u32 offset);

/* Whether an address is among the stubs, which lie at one place (layout.ld). */
extern u8 x32_stubs[];
static inline int is_stub(u64 rip) {
    return rip >= (u64)x32_stubs && rip < (u64)x32_stubs + (u64)STUB_COUNT * STUB_SIZE;
}

u32 get32(const u8 *at);
void put32(u8 *at, u64 value);

#endif
