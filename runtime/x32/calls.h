/* The calls that are not simply forwarded. Each takes the program's registers and gives what the kernel
 * would. */
#ifndef X32_CALLS_H
#define X32_CALLS_H

#include "account.h"
#include "thread.h"

/* The call as the program made it, with another number. */
long forward(struct frame *frame, u64 number);
/* By the table: refused, translated or forwarded. */
long answer_call(struct frame *frame, u64 number);
long x32_gate_now(long number, const u64 arguments[6]);
/* The same with SIGSYS blocked (signal_masks.c). */
long x32_gate_without_sigsys(long number, const u64 arguments[6]);
static inline long x32_gate(long number, const u64 arguments[6]) {
    return __builtin_expect(this_thread()->guards_sigsys, 0) ? x32_gate_without_sigsys(number, arguments)
                                                             : FOR_PROGRAM(x32_gate_now(number, arguments));
}
/* The i386 entry of the kernel: -ENOSYS where there is none, and under valgrind, which knows no such
 * instruction. */
long i386_call_6(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
static inline long i386_call(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e) {
    return i386_call_6(number, a, b, c, d, e, 0);
}
/* Whether the kernel has it (CONFIG_IA32_EMULATION, and no ia32_emulation=0 on its command line). */
int i386_entry_is_there(void);
/* entry.S: the entry itself, and the same for a call that cannot block, though a signal is held. */
long x32_i386(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
long x32_i386_at_once(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
long x32_spawn(const u64 registers[6], struct thread *child);

/* i386_numbers.c: a call made by `int $0x80`, and the way back to the program after it */
#define I386_CALL_SIZE 2 /* bytes of the instruction */
void i386_dispatch(struct frame *frame);
__attribute__((noreturn)) void i386_leave(const struct frame *frame);

/* files.c; whether a path is that of the program's own link in /proc */
int is_own_exe(u64 directory, const char *text);
long call_file(struct frame *frame);
long call_file_at(struct frame *frame);
long call_openat2(struct frame *frame);
long call_readlink(struct frame *frame);
long call_readlinkat(struct frame *frame);

/* directories.c */
long call_getdents(struct frame *frame);
long call_getdents64(struct frame *frame);

/* ioctls.c */
long call_ioctl(struct frame *frame);

/* memory_calls.c */
long call_mmap(struct frame *frame);
long call_munmap(struct frame *frame);
long call_madvise(struct frame *frame);
/* Before an advice: whether the sites are held until it has been given. */
int memory_advice_begins(u64 advice, const struct iovec64 *ranges, u64 count);
void memory_advice_ends(int held);
long call_mremap(struct frame *frame);
long call_mprotect(struct frame *frame);
long call_brk(struct frame *frame);
long call_shmat(struct frame *frame);
long call_shmdt(struct frame *frame);
long call_lock_memory(struct frame *frame);
long call_move_pages(struct frame *frame);

/* iovecs.c */
long call_readv(struct frame *frame);
long call_writev(struct frame *frame);
long call_preadv(struct frame *frame);
long call_pwritev(struct frame *frame);
long call_preadv2(struct frame *frame);
long call_pwritev2(struct frame *frame);
long call_vmsplice(struct frame *frame);
long call_process_vm_readv(struct frame *frame);
long call_process_vm_writev(struct frame *frame);
long call_process_madvise(struct frame *frame);

/* sockets.c */
long call_sendmsg(struct frame *frame);
long call_recvmsg(struct frame *frame);
long call_sendmmsg(struct frame *frame);
long call_recvmmsg(struct frame *frame);
long call_setsockopt(struct frame *frame);
long call_getsockopt(struct frame *frame);

/* waiting.c */
long call_rt_sigsuspend(struct frame *frame);
long call_pselect6(struct frame *frame);
long call_ppoll(struct frame *frame);
long call_epoll_pwait(struct frame *frame);
long call_io_pgetevents(struct frame *frame);
long call_waitid(struct frame *frame);
long call_timer_create(struct frame *frame);
long call_mq_notify(struct frame *frame);
long call_io_setup(struct frame *frame);
long call_io_submit(struct frame *frame);

/* clone.c */
long call_clone(struct frame *frame);
long call_clone3(struct frame *frame);
long call_fork(struct frame *frame);
long call_vfork(struct frame *frame);

/* processes.c */
long call_exit(struct frame *frame);
long call_exit_group(struct frame *frame);
long call_set_robust_list(struct frame *frame);
long call_get_robust_list(struct frame *frame);
long call_arch_prctl(struct frame *frame);
long call_prctl(struct frame *frame);
long call_seccomp(struct frame *frame);
long call_keyctl(struct frame *frame);

/* exec.c */
long call_execve(struct frame *frame);
long call_execveat(struct frame *frame);

#endif
