/* Segments of System V shared memory in the program's address space. shmdt does not tell how large what it
 * takes away is, so it is noted when it comes. */
#ifndef X32_ATTACHMENTS_H
#define X32_ATTACHMENTS_H

#include "kernel.h"

#define SHM_REMAP 040000

/* shmat and shmdt as a kernel does for an x32 program. One at a time (sites_hold). */
long attachments_attach(u64 id, u64 address, u64 flags);
long attachments_detach(u64 address);

#endif
