/*
 * The program's system-call instructions, and what has become of them.
 *
 * A site is rewritten when it traps and those of its page have trapped often: its address and its number are
 * known and not guessed, only what is used is touched, and no page of the program's text becomes resident
 * that the program itself would not have touched. Sites of its page that have trapped before go along if the
 * number is right before the call. Under valgrind, where nothing can trap, sites are found ahead instead.
 *
 * Five bytes of a site become a jump to its stub, which makes the call or enters the runtime, and goes back
 * (stubs.h). Where the stub is out of reach, the jump goes by a trampoline below 4 GiB.
 *
 * A site is taken back when the program may write or move its text, or has unmapped or replaced it. The
 * stub's place is used again when no thread can be in it any more (stub_users.h); until then the same site,
 * come again with the same bytes, finds its stub again.
 */
#ifndef X32_SITES_H
#define X32_SITES_H

#include "stubs.h"
#include "thread.h"

struct site_count {
    u64 rewritten;
    u64 refused;   /* traps of what is no site, or has no room */
    u64 elsewhere; /* traps of what is writable just now, or shared */
};

/* Whether calls are to be shown or counted, so that none may bypass the runtime. */
void sites_begin(int everything_enters, int rewriting);

/* Around a fork, a change of the program's mappings, and the notes on them below: meanwhile nothing is
 * rewritten. */
void sites_hold(void);
void sites_let_go(void);
/* Whether any of it is text, and so may have sites. */
int sites_have_text(u64 address, u64 size);
/* A mapping of the program's own, shared with no file and no process, became executable and not writable:
 * only there is anything rewritten. */
void sites_text(u64 address, u64 size);
/* Text is to be written or moved by the program: before, its own bytes are put back. */
void sites_restore(u64 address, u64 size);
/* The same of what stays text. */
void sites_put_back(u64 address, u64 size);
/* Before mremap, which refuses a range of several mappings: rewritten pages become one mapping with the rest.
 */
void sites_join(u64 address, u64 size);
/* Some of the program's memory may be locked from now on. */
void sites_memory_locked(void);
/* Text is gone, and whatever is there now is something else. */
void sites_gone(u64 address, u64 size);

/* A thread comes that will go on at `rip`; it goes. */
void sites_thread_begins(struct thread *thread, u64 rip);
void sites_thread_ends(struct thread *thread);

/* Rewrites the site whose `syscall` instruction is at `call` and was reached with `number` in rax. */
void sites_rewrite(u64 call, u64 number);
/* Rewrites all sites of a mapping that are certain. */
void sites_rewrite_all(u64 address, u64 size);
struct site_count sites_count(void);
/* How many pages of trampolines there are. */
u64 sites_pools(void);
/* The first page of trampolines in [low, high): in the program's eyes nothing is there. 0 where there is
 * none. */
u64 sites_own_page(u64 low, u64 high);

#endif
