#include "memory.h"
#include "patch.h"
#include "signals.h"
#include "thread.h"

size_t x32_copy(void *to, const void *from, size_t size);

#define USER_END 0x7ffffffff000UL

#define NO_SUCH_HOW -1L

/* The copy below finds only what is mapped, while a fault would let the stack grow down to it. So would any
 * call that reads there; this one reads eight bytes, and then has nothing to do. 0 where that is no memory.
 */
static int grow_stack_to(u64 address, size_t size) {
    for (u64 page = ROUND_DOWN(address, PAGE); page < address + size; page += PAGE) {
        /* Not at 0, which means that there is no set to read. */
        if (KERNEL_4(__NR_rt_sigprocmask, NO_SUCH_HOW, page + 8, 0, 8) == -EFAULT) {
            return 0;
        }
    }
    return 1;
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

/* The pages where the program's stack pointer is, and the next: what is there will be there in a moment, too,
 * since no other thread unmaps them while this one is in a call. With one thread alone the same holds of all
 * memory. */
static int stays_mapped(u64 address, size_t size) {
    u64 low = ROUND_DOWN(this_thread()->program_rsp, PAGE);
    return !x32_several_threads || (address >= low && address + size <= low + 2 * PAGE);
}

/* Whether each page can be read, by a call that reads eight bytes there and then has nothing to do: an eighth
 * of what it costs to let the kernel copy. */
static int can_be_read(u64 address, size_t size) { return size <= PAGE && grow_stack_to(address, size); }

int read_user(void *to, u64 from, size_t size) {
    if (!reachable(from, size)) {
        return -EFAULT;
    }
    if (signals_faults_kill(this_thread()) && !(stays_mapped(from, size) && can_be_read(from, size))) {
        int result = copy_by_kernel(from, to, size, __NR_process_vm_readv);
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
