/*
 * The trap flag, set by the program itself: each instruction of its own is followed by SIGTRAP, none of
 * another thread's is seen, and calls are made as ever, from places without an earlier call and from
 * those that have been.
 */
#include "transcript.h"
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>

static volatile unsigned traps, elsewhere, other_codes;

static void on_trap(int number, siginfo_t *info, void *context) {
    unsigned long long at = (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    (void)number;
    traps++;
    elsewhere += at >> 32 != 0;
    other_codes += info->si_code != TRAP_TRACE;
}

/* mov $nr,%eax; syscall; ret, and with a comparison of the result. */
typedef long long function(long long, long long, long long);
static function *place(int number, int compared) {
    unsigned char code[] = {0xb8, 0,    0,    0,    0,    0xeb, 0,    0x0f, 0x05,
                            0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0x90, 0x90, 0xc3};
    memcpy(code + 1, &number, sizeof number);
    if (!compared)
        memcpy(code + 5, (unsigned char[]){0x0f, 0x05, 0x90, 0x90, 0xc3}, 5);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + 64, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    return (function *)(page + 64);
}

static long long stepped(function *call, long long a, long long b, long long c) {
    __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq\n nop" : : : "memory", "cc");
    long long result = call(a, b, c);
    __asm__ volatile("pushfq\n andl $~0x100, (%%rsp)\n popfq\n nop" : : : "memory", "cc");
    return result;
}

static void calls(const char *what, int number, long long a, long long b, long long c) {
    for (int compared = 0; compared < 2; compared++) {
        function *call = place(number, compared);
        for (int i = 0; i < 16; i++) {
            long long right = number == SYS_getppid ? getppid() : number == SYS_writev ? 2 : -ENOSYS;
            traps = elsewhere = other_codes = 0;
            long long result = stepped(call, a, b, c);
            say("%s: %s, traps %s, elsewhere %u, of another kind %u", what,
                result == right ? "right" : "wrong",
                traps >= 6 && traps < 40 ? "some"
                : traps == 0             ? "none"
                                         : "odd",
                elsewhere, other_codes);
        }
    }
}

int main(void) {
    int ends[2];
    pipe(ends);
    struct iovec parts[] = {{"a", 1}, {"b", 1}};
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, NULL);
    calls("getppid", SYS_getppid, 0, 0, 0);
    calls("writev", SYS_writev, ends[1], (long long)(size_t)parts, 2);
    calls("no call", SYS_getppid + 900, 0, 0, 0);
    return 0;
}
