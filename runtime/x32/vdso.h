/*
 * The program's vDSO. Its functions jump to those of the kernel's, which lie above 4 GiB, where no unwinder
 * of an x32 program finds anything: a signal that comes there waits for the function's end. Each function
 * first notes where its return address lies, so that a signal can put x32_vdso_left there (entry.S).
 */
#ifndef X32_VDSO_H
#define X32_VDSO_H

#include "thread.h"

/* Maps the image and fills it in from the kernel's own vDSO at `kernel_vdso`. The address for
 * AT_SYSINFO_EHDR, or 0 where the kernel has none, or not all of its functions. */
u64 vdso_map(u64 kernel_vdso);
/* Whether the kernel's vDSO is there. */
int vdso_is_at(u64 rip);
/* A function of the vDSO returns to the runtime, and not to the program: whether that is possible. */
int vdso_return_to_runtime(struct thread *thread);
/* A handler may call the function that it interrupts: so that one begins again. */
u64 vdso_begin_again(u64 rip);

#endif
