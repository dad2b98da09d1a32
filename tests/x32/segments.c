/*
 * The GS base belongs to the program: arch_prctl and the instructions.
 */
#include "transcript.h"
#include <asm/prctl.h>
#include <pthread.h>

static uint64_t cells[2] = {0x1234567890, 77};
static uint64_t at_gs(void) {
    uint64_t value;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(value));
    return value;
}
static void handler(int number) {
    (void)number;
    IS(at_gs() == 0x1234567890);
}
static void *thread(void *nothing) {
    uint64_t base = 7;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    say("a new thread: %s", base == (uintptr_t)cells ? "as its maker's" : base ? "other" : "0");
    return nothing;
}

int main(void) {
    uint64_t base = 7;
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, &base));
    HEX(base);
    RESULT(syscall(SYS_arch_prctl, ARCH_SET_GS, cells));
    IS(at_gs() == 0x1234567890);
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, &base));
    IS(base == (uintptr_t)cells);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    pid_t child = fork();
    if (child == 0) {
        IS(at_gs() == 0x1234567890);
        _exit(0);
    }
    ended("child", child);
    register uint64_t far __asm__("rdi") = ARCH_SET_GS;
    register uint64_t address __asm__("rsi") = 1ULL << 40;
    int64_t answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(SYS_arch_prctl), "r"(far), "r"(address)
                     : "rcx", "r11", "memory");
    VALUE(answer);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    HEX(base);
    RESULT(syscall(SYS_arch_prctl, ARCH_SET_GS, 0));
    return 0;
}
