/* The program's vDSO. */
#ifndef X32_VDSO_H
#define X32_VDSO_H

#include "kernel.h"

/* Maps the image and fills it in from the kernel's own vDSO at `kernel_vdso`. The address for
 * AT_SYSINFO_EHDR, or 0 where the kernel has none, or not all of its functions. */
u64 vdso_map(u64 kernel_vdso);

#endif
