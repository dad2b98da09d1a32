/*
 * Calls from every kind of site, each between two breakpoints, and a handler of SIGUSR1 that looks where it
 * was sent. tracer.c sends one at each instruction in turn.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* edi: the number, where the site does not move it itself; esi: the pipe; rdx: the buffer. */
__asm__(
    ".text\n"
    "moved: xor %eax, %eax\n mov %esi, %edi\n mov %rdx, %rsi\n mov $1, %edx\n mov $0x40000000, %eax\n "
    "syscall\n "
    "ret\n moved_end:\n"
    "long_moved: mov $0x40000027, %rax\n syscall\n ret\n long_moved_end:\n"
    "entering: xor %edi, %edi\n xor %esi, %esi\n mov $0x4000020d, %eax\n syscall\n ret\n entering_end:\n"
    "between: mov %esi, %r8d\n mov $0x40000000, %eax\n mov %rdx, %rsi\n mov %r8d, %edi\n mov one(%rip), "
    "%edx\n "
    "syscall\n ret\n between_end:\n"
    ".balign 64\ncompared: mov %edi, %eax\n mov %esi, %edi\n mov %rdx, %rsi\n mov $1, %edx\n nop\n syscall\n "
    "cmp "
    "$-4095, %rax\n jae 1f\n ret\n1: ud2\n compared_end:\n"
    ".balign 64\ncancelled: sub $24, %rsp\n mov %edi, %eax\n mov %esi, %edi\n mov %rdx, %rsi\n mov $1, "
    "%edx\n mov "
    "$0x1234567, %r11d\n call 2f\n mov (%rsp), %r11\n add $24, %rsp\n cmp $0x1234567, %r11\n jne 1b\n ret\n"
    ".balign 64\n2: mov %r11, 8(%rsp)\n syscall\n ret\n cancelled_end:\n"
    ".balign 64\nlooped: push %rbx\n mov $1, %ebx\n mov %edi, %edx\n jmp 4f\n .skip 32, 0x90\n4: dec %ebx\n "
    "js 5f\n mov "
    "%edx, %eax\n syscall\n jmp 4b\n5: pop %rbx\n ret\n looped_end:\n"
    ".data\none: .long 1\n.text\n");
typedef long call(unsigned number, int pipe, void *buffer);
#define KIND(name)                                                                                           \
    call name;                                                                                               \
    extern char name##_end[];
KIND(moved)
KIND(long_moved)
KIND(entering)
KIND(between)
KIND(compared)
KIND(cancelled)
KIND(looped)

enum answer { BYTE, PROCESS, ZERO };
static const struct kind {
    const char *name;
    call *begin;
    char *end;
    unsigned number;
    enum answer answer;
} kinds[] = {
    {"moved", moved, moved_end, 0, BYTE},
    {"long move", long_moved, long_moved_end, 0, PROCESS},
    {"entering", entering, entering_end, 0, ZERO},
    {"between", between, between_end, 0, BYTE},
    {"compared, plain", compared, compared_end, 0x40000000, BYTE},
    {"compared, entering", compared, compared_end, 0x40000000 | 515, BYTE},
    {"compared, 64-bit", compared, compared_end, SYS_getpid & 0xfff, PROCESS},
    {"cancelled, plain", cancelled, cancelled_end, 0x40000000, BYTE},
    {"cancelled, entering", cancelled, cancelled_end, 0x40000000 | 515, BYTE},
    {"cancelled, 64-bit", cancelled, cancelled_end, SYS_getpid & 0xfff, PROCESS},
    {"looped", looped, looped_end, 0x40000027, PROCESS},
};

static const struct kind *now;
static volatile int handled, outside;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    unsigned long long rip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    handled++;
    /* The breakpoint before and the one after belong to the loop. */
    int own = rip >= (unsigned)(unsigned long)now->begin && rip < (unsigned)(unsigned long)now->end;
    if (!own && (rip >> 32 != 0 || rip < (unsigned)(unsigned long)&on_signal))
        outside++;
}

/* Tells the tracer which kind and step; what it answers, after the call: whether a signal was sent. */
static int breakpoint(unsigned kind, unsigned step) {
    unsigned answer;
    __asm__ volatile("int3" : "=a"(answer) : "a"(0), "D"(kind), "S"(step) : "memory");
    return (int)answer;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    int ends[2], wrong = 0;
    pipe(ends);
    pid_t self = getpid();
    for (unsigned kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        now = &kinds[kind];
        int sent = 1;
        /* The first twelve of a page trap. */
        for (unsigned step = 0; sent || step < 14; step++) {
            char byte = 0;
            struct {
                unsigned base, size;
            } part = {(unsigned)(unsigned long)&byte, 1};
            int vector = (now->number & 0xfff) == 515;
            if (now->answer == BYTE)
                write(ends[1], &(char){(char)(step % 100 + 1)}, 1);
            handled = outside = 0;
            breakpoint(kind, step);
            long result = now->begin(now->number, ends[0], vector ? (void *)&part : &byte);
            sent = breakpoint(kind, step);
            long wanted = now->answer == BYTE ? 1 : now->answer == PROCESS ? self : 0;
            int right = result == wanted && (now->answer != BYTE || byte == (char)(step % 100 + 1));
            if (!right || handled != sent || outside != 0) {
                printf("%s, step %u: answer %ld, signals %d of %d, %d elsewhere\n", now->name, step, result,
                       handled, sent, outside);
                wrong++;
            }
            if (!right && now->answer == BYTE) {
                close(ends[0]), close(ends[1]);
                pipe(ends);
            }
        }
    }
    printf("wrong: %d\n", wrong);
    return wrong != 0;
}
