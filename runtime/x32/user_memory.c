#include "user_memory.h"
#include "code_writes.h"
#include "signals.h"
#include "thread.h"
#include "valgrind.h"

size_t x32_copy(void *to, const void *from, size_t size);

#define USER_END 0x7ffffffff000UL

#define NO_SUCH_HOW -1L
#define TURNS 100      /* of other threads, at first */
#define PATIENCE 20000 /* times 50 microseconds, and more where timers are coarse */

/* The copy below finds only what is mapped, while a fault would let the stack grow down to it. So would any
 * call that reads there; this one reads eight bytes, and then has nothing to do. 0 where that is no memory.
 */
static int grow_stack_to(u64 address, size_t size) {
    int grows = 1;
    valgrind_reports(0); /* what the program has on no stack any more may be read here */
    for (u64 page = ROUND_DOWN(address, PAGE); page < address + size; page += PAGE) {
        /* Not at 0, which means that there is no set to read. */
        if (KERNEL_4(__NR_rt_sigprocmask, NO_SUCH_HOW, page + 8, 0, 8) == -EFAULT) {
            grows = 0;
            break;
        }
    }
    valgrind_reports(1);
    return grows;
}

/* With SIGSEGV blocked or ignored a fault would end the process, so the kernel is asked to look. At this
 * thread: the first one may have ended, and what it had is gone. */
static int copy_by_kernel(u64 program, void *own, size_t size, int number) {
    struct iovec64 mine = {(u64)own, size}, theirs = {program, size};
    long thread = thread_own_id();
    long done = KERNEL_6(number, thread, &mine, 1, &theirs, 1, 0);
    if (done != (long)size && done != -EPERM && done != -ENOSYS && grow_stack_to(program, size)) {
        done = KERNEL_6(number, thread, &mine, 1, &theirs, 1, 0);
    }
    if (done == -EPERM || done == -ENOSYS) {
        return 1;
    }
    return done == (long)size ? 0 : -EFAULT;
}

static int reachable(u64 address, size_t size) { return address < USER_END && size <= USER_END - address; }

/* Threads that read what they have just found to be mapped, and those that take memory away. */
static u32 readers, unmappers;
/* One was killed while it read (it was a process of its own), or stopped: from now on the kernel copies. */
static u32 is_lost;

int memory_unmapping_begins(void) {
    static const u64 a_moment[2] = {0, 50000};
    if (!x32_several_threads || is_lost) {
        return 0;
    }
    __atomic_add_fetch(&unmappers, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; __atomic_load_n(&readers, __ATOMIC_SEQ_CST) != 0; i++) {
        if (i == PATIENCE) {
            is_lost = 1;
            break;
        }
        i < TURNS ? KERNEL_1(__NR_sched_yield, 0) : KERNEL_2(__NR_nanosleep, a_moment, 0);
    }
    return 1;
}

void memory_unmapping_ends(int counted) {
    if (counted) {
        __atomic_sub_fetch(&unmappers, 1, __ATOMIC_RELEASE);
    }
}

void memory_forked(void) { readers = unmappers = is_lost = 0; }

/* Until it ends nothing is unmapped. 0 where something is about to be. */
static int reading_begins(void) {
    __atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&unmappers, __ATOMIC_SEQ_CST) == 0) {
        return 1;
    }
    __atomic_sub_fetch(&readers, 1, __ATOMIC_RELEASE);
    return 0;
}

static void reading_ends(void) { __atomic_sub_fetch(&readers, 1, __ATOMIC_RELEASE); }

/* Whether each page can be read is found out by a call that reads eight bytes there and then has nothing to
 * do, in an eighth of what it costs to let the kernel copy. 1 where the kernel has to be asked to. */
static int copy_what_is_mapped(void *to, u64 from, size_t size) {
    if (size > PAGE || is_lost || !reading_begins()) {
        return 1;
    }
    int result = 1;
    if (grow_stack_to(from, size)) {
        result = x32_copy(to, (const void *)from, size) == 0 ? 0 : -EFAULT;
    }
    reading_ends();
    return result;
}

int read_user(void *to, u64 from, size_t size) {
    if (!reachable(from, size)) {
        return -EFAULT;
    }
    if (signals_faults_kill(this_thread())) {
        int result = copy_what_is_mapped(to, from, size);
        result = result > 0 ? copy_by_kernel(from, to, size, __NR_process_vm_readv) : result;
        if (result <= 0) {
            return result;
        }
    }
    return x32_copy(to, (const void *)from, size) == 0 ? 0 : -EFAULT;
}

int write_user(u64 to, const void *from, size_t size) {
    if (!reachable(to, size)) {
        return -EFAULT;
    }
    if (signals_faults_kill(this_thread())) {
        int result = copy_by_kernel(to, (void *)from, size, __NR_process_vm_writev);
        if (result <= 0) {
            return result;
        }
    }
    return x32_copy((void *)to, from, size) == 0 ? 0 : -EFAULT;
}

int read_user_text(char *to, u64 from, size_t room) {
    size_t done = 0;
    while (done < room) {
        /* Never across the end of a page: what follows the 0 need not be there. */
        size_t piece = PAGE - ((from + done) & (PAGE - 1));
        piece = piece < room - done ? piece : room - done;
        piece = piece < 64 ? piece : 64;
        if (read_user(to + done, from + done, piece) < 0) {
            return -EFAULT;
        }
        for (size_t i = 0; i < piece; i++) {
            if (to[done + i] == 0) {
                return 0;
            }
        }
        done += piece;
    }
    return -ENAMETOOLONG;
}
