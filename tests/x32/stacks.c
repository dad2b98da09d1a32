/*
 * built: static, dynamic
 * flags: -Wno-clobbered
 *
 * The main stack: how far it grows, what limits it, and what happens at its end; setjmp and contexts.
 */
#include "transcript.h"
#include <alloca.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

static jmp_buf plain;
static sigjmp_buf with_mask;
static ucontext_t first, second, back;
static int steps;
static char stack_one[64 << 10], stack_two[64 << 10];

__attribute__((noinline)) static long deep(long level, long most) {
    volatile char room[4000];
    room[0] = level;
    return level >= most ? level : deep(level + 1, most) + (room[0] & 0);
}
__attribute__((noinline)) static void jump(int value) { longjmp(plain, value); }
static void handler(int number) {
    (void)number;
    siglongjmp(with_mask, 5);
}
static void one(int a, int b) {
    for (int i = 0; i < 3; i++) {
        say("first: %d %d, step %d", a, b, steps++);
        swapcontext(&first, &second);
    }
}
static void two(void) {
    for (;;) {
        say("second, step %d", steps++);
        double x = 1.0 / steps;
        swapcontext(&second, &first);
        if (x < 0)
            return;
    }
}

int main(int count, char **words) {
    if (count > 1) {
        struct rlimit limit;
        getrlimit(RLIMIT_STACK, &limit);
        say("limit %lld KiB", (long long)limit.rlim_cur >> 10);
        VALUE(deep(0, atoi(words[1])));
        return 0;
    }
    struct rlimit limit;
    RESULT(getrlimit(RLIMIT_STACK, &limit));
    VALUE(limit.rlim_cur);
    VALUE(deep(0, 1800));
    volatile char *room = alloca(4 << 20);
    room[0] = room[(4 << 20) - 1] = 1;
    pid_t child = fork();
    if (child == 0) {
        deep(0, 3000);
        say("not reached");
    }
    ended("past the limit", child);
    limit.rlim_cur = 32 << 20;
    child = fork();
    if (child == 0) {
        RESULT(setrlimit(RLIMIT_STACK, &limit));
        VALUE(deep(0, 5000));
        _exit(0);
    }
    ended("raised while it runs", child);
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_STACK, &limit);
        execve(words[0], (char *[]){words[0], "6000", NULL}, environ);
    }
    ended("raised for the next program", child);
    child = fork();
    if (child == 0) {
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_STACK, &limit);
        execve(words[0], (char *[]){words[0], "200", NULL}, environ);
    }
    ended("lowered for the next program", child);
    child = fork();
    if (child == 0) {
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_STACK, &limit);
        execve(words[0], (char *[]){words[0], "400", NULL}, environ);
    }
    ended("and too deep", child);

    say("jumps");
    volatile int times = 0;
    int value = setjmp(plain);
    VALUE(value);
    if (times++ < 3)
        jump(times - 1);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(with_mask, 1) == 0)
            raise(SIGUSR1);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    IS(sigismember(&now, SIGUSR1));
    if (sigsetjmp(with_mask, 0) == 0)
        raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    IS(sigismember(&now, SIGUSR1));

    say("contexts");
    RESULT(getcontext(&first));
    first.uc_stack.ss_sp = stack_one, first.uc_stack.ss_size = sizeof stack_one;
    first.uc_link = &back;
    makecontext(&first, (void (*)(void))one, 2, 17, -4);
    getcontext(&second);
    second.uc_stack.ss_sp = stack_two, second.uc_stack.ss_size = sizeof stack_two;
    makecontext(&second, two, 0);
    RESULT(swapcontext(&back, &first));
    VALUE(steps);
    volatile int again = 0;
    getcontext(&back);
    if (again++ < 2)
        setcontext(&back);
    VALUE(again);
    return 0;
}
