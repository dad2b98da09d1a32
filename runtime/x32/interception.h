/*
 * What catches a system call of a site that has not been rewritten: Syscall User Dispatch (Linux 5.11), or,
 * where that is not to be had, a seccomp filter on bit 30.
 *
 * Dispatch is armed for addresses below 4 GiB, where the program is; the runtime, its stubs and the kernel's
 * vDSO lie above and are let through. It is each thread's own and gone at execve: a 64-bit child is not
 * touched, and no right is given up. The filter is inherited for ever and takes no_new_privs.
 */
#ifndef X32_INTERCEPTION_H
#define X32_INTERCEPTION_H

#include "kernel.h"

enum interception { CATCH_DISPATCH, CATCH_SECCOMP, CATCH_NOTHING };

/* Decides, and arms the first thread. `valgrind`: it makes every call itself, so nothing can be caught and
 * every site has to be rewritten ahead. Gives up where nothing works. */
void interception_begin(int valgrind, int seccomp_wanted);
/* `with_stubs`: the stubs' own calls are caught, too, where calls are caught by dispatch. */
void interception_arm_thread(int with_stubs);
enum interception interception_used(void);
/* Whether a `syscall` of the program's traps whatever is in rax, and not only where that has bit 30. */
int interception_catches_every_number(void);
/* Whether a SIGSYS is ours. One of a stub is where the thread was armed with stubs. */
int interception_caught(i32 code, i32 error, u64 rip, int with_stubs);

#endif
