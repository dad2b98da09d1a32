/*
 * `int $0x80` in a program: the i386 call, with its number, its registers and its structures, as a kernel
 * with x32 and IA32_EMULATION makes it. The kernel's own i386 entry makes most of them. Calls by which the
 * runtime would lose the process are made as x32's own, where those take the same arguments, and refused
 * where not.
 */
#include "calls.h"
#include "diagnostics.h"
#include "settings.h"
#include "signals.h"
#include "trace.h"
#include "user_memory.h"

#define FIRST_COMMON 424 /* from here on numbers and arguments are those of x86-64 */
#define REFUSED 0xffff
#define PAGES_TO_BYTES 4096UL

/* linux arch/x86/entry/syscalls/syscall_32.tbl: x32's number of the call, or REFUSED. */
static const struct {
    u16 i386, x32;
} rows[] = {
    {1, 60},        /* exit */
    {2, 57},        /* fork */
    {5, 2},         /* open */
    {11, 520},      /* execve */
    {26, REFUSED},  /* ptrace */
    {33, 21},       /* access */
    {45, 12},       /* brk */
    {48, REFUSED},  /* signal: a handler would begin in 32-bit mode, as of all that sets one */
    {67, REFUSED},  /* sigaction */
    {68, REFUSED},  /* sgetmask: half of the mask, as of all without rt_ */
    {69, REFUSED},  /* ssetmask */
    {72, REFUSED},  /* sigsuspend */
    {73, REFUSED},  /* sigpending */
    {85, 89},       /* readlink */
    {91, 11},       /* munmap */
    {119, REFUSED}, /* sigreturn */
    {120, REFUSED}, /* clone: its thread area is a descriptor of 32-bit code */
    {125, 10},      /* mprotect */
    {126, REFUSED}, /* sigprocmask */
    {150, 149},     /* mlock */
    {152, 151},     /* mlockall */
    {163, 25},      /* mremap */
    {172, 157},     /* prctl */
    {173, REFUSED}, /* rt_sigreturn */
    {174, REFUSED}, /* rt_sigaction */
    {175, 14},      /* rt_sigprocmask */
    {176, 522},     /* rt_sigpending */
    {177, REFUSED}, /* rt_sigtimedwait: times of 32 bits */
    {178, 524},     /* rt_sigqueueinfo */
    {179, 130},     /* rt_sigsuspend */
    {186, 525},     /* sigaltstack */
    {190, REFUSED}, /* vfork */
    {219, 28},      /* madvise */
    {252, 231},     /* exit_group */
    {295, 257},     /* openat */
    {305, 267},     /* readlinkat */
    {307, 269},     /* faccessat */
    {308, REFUSED}, /* pselect6: a mask, and times of 32 bits */
    {309, REFUSED}, /* ppoll */
    {311, 530},     /* set_robust_list */
    {312, 531},     /* get_robust_list */
    {319, 281},     /* epoll_pwait */
    {335, 536},     /* rt_tgsigqueueinfo */
    {354, 317},     /* seccomp */
    {358, 545},     /* execveat */
    {376, 325},     /* mlock2 */
    {380, 329},     /* pkey_mprotect */
    {383, 332},     /* statx */
    {385, REFUSED}, /* io_pgetevents */
    {397, 30},      /* shmat */
    {398, 67},      /* shmdt */
    {413, REFUSED}, /* pselect6_time64: the mask is behind a pointer of 32 bits */
    {414, 271},     /* ppoll_time64 */
    {416, REFUSED}, /* io_pgetevents_time64 */
    {421, 523},     /* rt_sigtimedwait_time64 */
    {435, REFUSED}, /* clone3 */
};

#define I386_MMAP 90
#define I386_IPC 117
#define I386_MMAP2 192
#define IPC_SHMAT 21
#define IPC_SHMDT 22

static long as_x32(struct frame *call, u64 number) {
    call->rax = number | X32_BIT;
    return answer_call(call, call->rax);
}

/* The offset counts pages. */
static long map_pages(struct frame *call) {
    call->r9 *= PAGES_TO_BYTES;
    return as_x32(call, __NR_mmap);
}

/* The arguments are in memory. */
static long map_by_structure(struct frame *call) {
    u32 wanted[6];
    if (READ_USER(wanted, call->rdi) < 0) {
        return -EFAULT;
    }
    if (wanted[5] & (PAGE - 1)) {
        return -EINVAL;
    }
    call->rdi = wanted[0];
    call->rsi = wanted[1];
    call->rdx = wanted[2];
    call->r10 = wanted[3];
    call->r8 = wanted[4];
    call->r9 = wanted[5];
    return as_x32(call, __NR_mmap);
}

/* `call` has the arguments where x32 has them. */
static long answer_i386(struct frame *call, u64 number) {
    for (u32 i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].i386 == number) {
            return rows[i].x32 == REFUSED ? -ENOSYS : as_x32(call, rows[i].x32);
        }
    }
    if (number >= FIRST_COMMON && number < 512) {
        return as_x32(call, number);
    }
    u64 operation = call->rdi & 0xffff;
    switch (number) {
    case I386_MMAP:
        return map_by_structure(call);
    case I386_MMAP2:
        return map_pages(call);
    case I386_IPC:
        if (operation == IPC_SHMAT || operation == IPC_SHMDT) {
            return -ENOSYS;
        }
        break;
    default:
        break;
    }
    return i386_call_6(number, call->rdi, call->rsi, call->rdx, call->r10, call->r8, call->r9);
}

void i386_dispatch(struct frame *frame) {
    struct thread *thread = this_thread();
    struct frame call = *frame;
    u64 number = (u32)frame->rax;
    call.rdi = (u32)frame->rbx;
    call.rsi = (u32)thread->i386_rcx;
    call.rdx = (u32)frame->rdx;
    call.r10 = (u32)frame->rsi;
    call.r8 = (u32)frame->rdi;
    call.r9 = (u32)frame->rbp;
    if (settings.trace) {
        trace_before(&call, number | TRACE_I386);
    }
    long result = answer_i386(&call, number);
    if (settings.trace) {
        trace_after(&call, number | TRACE_I386, result);
    }
    int again = result == -RESTART_AFTER_SIGNAL;
    frame->rax = again ? number : (u64)result;
    frame->rip -= again ? I386_CALL_SIZE : 0;
}

__attribute__((noreturn)) void x32_deliver_held(const struct frame *frame);

/* `int $0x80` keeps rcx and r11, which x32_leave needs: so the kernel's own return restores all registers. */
void i386_leave(const struct frame *frame) {
    signals_block_until_leaving(this_thread());
    x32_deliver_held(frame);
}
