/*
 * built: static, dynamic
 *
 * Code that jumps from afar to the comparison behind a system call, when the call has been made so often that
 * its site is rewritten: with SIGSEGV let in, blocked and ignored, and beside another thread.
 */
#include "transcript.h"
#include <pthread.h>

/* `site` is getpid(); `far` goes on at its comparison with what it is given, and so does `narrow_far`. */
__asm__(".text\n"
        "site: mov $0x40000027, %eax\n jmp 1f\n1: syscall\n2: cmp $-4095, %rax\n jae 3f\n ret\n"
        "3: neg %eax\n add $1000000, %eax\n ret\n"
        "narrow: mov $0x40000027, %eax\n jmp 4f\n4: syscall\n5: cmp $-4096, %eax\n ja 6f\n ret\n"
        "6: neg %eax\n add $1000000, %eax\n ret\n"
        ".skip 1024, 0x90\n"
        "far: movslq %edi, %rax\n jmp 2b\n"
        "narrow_far: mov %edi, %eax\n jmp 5b\n");
int site(void), narrow(void), far(int), narrow_far(int);

static void jump(const char *what) {
    int right = 0;
    for (int i = 0; i < 40; i++)
        right += (site() == getpid()) + (narrow() == getpid());
    say("%s: %d calls", what, right);
    VALUE(far(5));
    VALUE(far(0));
    VALUE(far(-1));
    VALUE(far(-4095));
    VALUE(far(-4096));
    VALUE(narrow_far(5));
    VALUE(narrow_far(-1));
    VALUE(narrow_far(-4096));
    /* A number of a call that would end the program. */
    VALUE(far(0x400000e7));
    VALUE(narrow_far(231));
}

static void *in_thread(void *nothing) {
    jump("in a thread");
    return nothing;
}

int main(void) {
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    jump("let in");
    sigprocmask(SIG_BLOCK, &faults, NULL);
    jump("blocked");
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    sigprocmask(SIG_UNBLOCK, &faults, NULL);
    signal(SIGSEGV, SIG_IGN);
    jump("ignored");
    return 0;
}
