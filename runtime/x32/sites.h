/*
 * The program's system-call instructions, and what has become of them.
 *
 * A site is rewritten when it traps for the second time: its address and its number are known and not
 * guessed, only what is used is touched, and no page of the program's text becomes resident that the program
 * itself would not have touched. Under valgrind, where nothing can trap, sites are found ahead instead.
 *
 * Five bytes of a site become a jump to its stub, which makes the call or enters the runtime, and goes back
 * (stubs.h). Where the stub is out of reach, the jump goes by a trampoline below 4 GiB.
 */
#ifndef X32_SITES_H
#define X32_SITES_H

#include "stubs.h"

struct site_count {
    u64 rewritten, refused;
};

/* Whether calls are to be shown or counted, so that none may bypass the runtime. */
void sites_begin(int everything_enters, int rewriting);
/* A mapping of the program became, or ceased to be, executable and not writable: only there is anything
 * rewritten. */
void sites_text(u64 address, u64 size);
void sites_forget_text(u64 address, u64 size);
/* Rewrites the site whose `syscall` instruction is at `call` and was reached with `number` in rax. */
void sites_rewrite(u64 call, u64 number);
/* Rewrites all sites that can be told for certain in a mapping. */
void sites_rewrite_all(u64 address, u64 size);
/* Whether an address is within a stub. */
int sites_is_stub(u64 rip);
/* Where in the program an address within a stub or a trampoline belongs. `rax` is changed as if the stub were
 * not there. 0 where it is neither. */
u64 sites_in_program(u64 rip, u64 *rax);
/* A fault at the instruction that a jump has covered: where in the stub it is made instead; 0 where there is
 * none. */
u64 sites_after_covered(u64 rip);
/* The `syscall` of the site that goes on at `back`. */
u64 sites_call_before(u64 back);
struct site_count sites_count(void);
/* Where stubs lie, and how many pages of trampolines there are. */
u64 sites_stubs(void);
u64 sites_stubs_size(void);
u64 sites_pools(void);
/* Around a fork: nothing is half rewritten in the child. */
void sites_hold(void);
void sites_let_go(void);

/* The first page of trampolines in [low, high): in the program's eyes nothing is there. 0 where there is
 * none. */
u64 sites_own_page(u64 low, u64 high);

#endif
