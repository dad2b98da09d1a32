/*
 * Where the program is when a thread is in a stub, in a trampoline, or at what a jump covers; and where it
 * goes on.
 */
#ifndef X32_SITE_PLACES_H
#define X32_SITE_PLACES_H

#include "kernel.h"

/* Where in the program an address within a stub or a trampoline belongs. `rax` is changed as if the stub were
 * not there. 0 where it is neither. */
u64 sites_in_program(u64 rip, u64 flags, u64 *rax);
/* The `syscall` for which the stub has just made a call, to be made again, if its number is known: `rax`
 * becomes that. Else 0. */
u64 sites_call_again(u64 rip, u64 *rax);
/* Whether an address is within a stub or a trampoline where nothing of the site has happened yet. */
int sites_is_at_start(u64 rip);
/* A trap or a fault at the comparison that a jump has covered: it is made here, and the program goes on
 * behind it. 0 where there is none. */
u64 sites_after_covered(u64 rip, u64 rax, u64 *flags);
/* Of a trap that goes on at `rip`: whether its `syscall` stood there only while a site was written, and held
 * the thread (site_meanwhile). The writing is over then, and the thread is to go back to it. */
int sites_was_held(u64 rip);
/* Where a thread continues that is to go on at `rip`. At the comparison of a site: behind it, since another
 * thread may cover it before the next instruction, and where a fault follows it ends a process with SIGSEGV
 * blocked. */
u64 sites_go_on(u64 rip, u64 rax, u64 *flags);
/* Where nothing can trap: the begin of the site whose call, with its number, is at `rip`; else `rip`. A jump
 * covers only what is before such a call. */
u64 sites_begin_again(u64 rip, u64 rax);
/* The `syscall` of the site that goes on at `back`. */
u64 sites_call_before(u64 back);

#endif
