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
/* Text is gone, and whatever is there now is something else. */
void sites_gone(u64 address, u64 size);

/* A thread comes that will go on at `rip`; it goes. */
void sites_thread_begins(struct thread *thread, u64 rip);
void sites_thread_ends(struct thread *thread);

/* Rewrites the site whose `syscall` instruction is at `call` and was reached with `number` in rax. */
void sites_rewrite(u64 call, u64 number);
/* Rewrites all sites of a mapping that are certain. */
void sites_rewrite_all(u64 address, u64 size);
/* Whether an address is within a stub. */
int sites_is_stub(u64 rip);
/* Where in the program an address within a stub or a trampoline belongs. `rax` is changed as if the stub were
 * not there. 0 where it is neither. */
u64 sites_in_program(u64 rip, u64 flags, u64 *rax);
/* Whether an address is within a stub or a trampoline where nothing of the site has happened yet. */
int sites_is_at_start(u64 rip);
/* A trap or a fault at the comparison that a jump has covered: it is made here, and the program goes on
 * behind it. 0 where there is none. */
u64 sites_after_covered(u64 rip, u64 rax, u64 *flags);
/* Where a thread continues that is to go on at `rip`. At the comparison of a site: behind it, since another
 * thread may cover it before the next instruction, and where a fault follows it ends a process with SIGSEGV
 * blocked. */
u64 sites_go_on(u64 rip, u64 rax, u64 *flags);
/* The `syscall` of the site that goes on at `back`. */
u64 sites_call_before(u64 back);
struct site_count sites_count(void);
/* How many pages of trampolines there are. */
u64 sites_pools(void);
/* The first page of trampolines in [low, high): in the program's eyes nothing is there. 0 where there is
 * none. */
u64 sites_own_page(u64 low, u64 high);

#endif
