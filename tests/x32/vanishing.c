/*
 * Memory that another thread unmaps while a call reads it, of a thread that blocks SIGSEGV: the call ends
 * with EFAULT or not, and the process goes on. Near the stack pointer, and far from it.
 */
#include "transcript.h"
#include <sched.h>
#include <sys/mman.h>

enum { PAGE = 4096, TIMES = 100000 };

static char *pages; /* a stack of two pages, and one that comes and goes */
static volatile int goes_on = 1, good, bad, other;
static char far_stack[16 * PAGE] __attribute__((aligned(PAGE)));

static int caller(void *unused) {
    (void)unused;
    for (int i = 0; i < TIMES; i++) {
        long result = syscall(SYS_rt_sigaction, SIGUSR1, pages + 2 * PAGE + 128, NULL, 8);
        good += result == 0;
        bad += result == -1 && errno == EFAULT;
        other += result != 0 && errno != EFAULT;
    }
    goes_on = 0;
    syscall(SYS_exit, 0);
    return 0;
}

static void while_it_comes_and_goes(const char *what, char *stack) {
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    goes_on = 1, good = bad = other = 0;
    if (clone(caller, stack, flags, NULL) < 0)
        say("clone: %s", error_name(errno));
    while (goes_on) {
        munmap(pages + 2 * PAGE, PAGE);
        mmap(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        for (volatile int i = 0; i < 300; i++)
            ;
        mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
        mprotect(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
    }
    say("%s", what);
    IS(good + bad == TIMES);
    VALUE(other);
}

int main(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while_it_comes_and_goes("near the stack pointer", pages + 2 * PAGE);
    while_it_comes_and_goes("far from it", far_stack + sizeof far_stack);
    return 0;
}
