/*
 * Two threads, one call: `tracer-covered` steps the first through it, with SIGSEGV blocked, and lets the
 * second make the same call, so often that its place is rewritten, when the first is about to execute the
 * comparison behind it. Built for x32.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 3, APART = 256, COMPARISON = 9 };

/* getppid(), behind a comparison with eax, with rax, and one to which a jump comes that makes no call (with
 * edi not 0). */
static const unsigned char wide[] = {0xb8, 0x6e, 0,    0,    0x40, 0xeb, 0,    0x0f, 0x05, 0x48,
                                     0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0xf4};
static const unsigned char narrow[] = {0xb8, 0x6e, 0,    0,    0x40, 0xeb, 0,    0x0f, 0x05,
                                       0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0xf4};
/* test %edi,%edi; mov $0x4000006e,%eax; jnz comparison; syscall; comparison: cmp; jae; ret */
static const unsigned char jumped[] = {0xb8, 0x6e, 0,    0,    0x40, 0x75, 0x02, 0x0f, 0x05, 0x48,
                                       0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0xf4};

static unsigned char *page;
static volatile int asked, answered;

/* With edi and the flags: the zero flag is set where edi is 0. */
static int call(int place, int jumps) {
    int result;
    __asm__ volatile("test %%edi, %%edi\n call *%1"
                     : "=a"(result)
                     : "r"((unsigned long long)(size_t)(page + place * APART)), "D"(jumps)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

static void *other(void *nothing) {
    for (;;) {
        while (asked == answered)
            ;
        int place = asked - 1;
        for (int i = 0; i < 40; i++)
            call(place, 0);
        answered = asked;
    }
    return nothing;
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, wide, sizeof wide);
    memcpy(page + APART, narrow, sizeof narrow);
    memcpy(page + 2 * APART, jumped, sizeof jumped);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &faults, NULL);
    int right = 0;
    for (int place = 0; place < PLACES; place++) {
        /* The tracer gets the address of the comparison, and where to ask. */
        __asm__ volatile("int3"
                         :
                         : "a"(page + place * APART + COMPARISON), "D"(&asked), "S"(&answered),
                           "d"(place + 1));
        right += call(place, 0) == getppid();
        __asm__ volatile("int3");
    }
    right += call(2, 1) == 0x4000006e;
    printf("%d of %d calls are right\n", right, PLACES + 1);
    return right != PLACES + 1;
}
