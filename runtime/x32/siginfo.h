/* What a signal carries, in the two widths: 128 bytes in both, the union at 12 in x32 and at 16 in the
 * kernel. Pure. */
#ifndef X32_SIGINFO_H
#define X32_SIGINFO_H

#include "x32.h"

#define SI_USER 0
#define SI_KERNEL 0x80
#define SI_QUEUE -1
#define SI_TIMER -2
#define SI_MESGQ -3

void siginfo_to_x32(struct siginfo32 *to, const struct siginfo64 *from);
void siginfo_from_x32(struct siginfo64 *to, const struct siginfo32 *from);

#endif
