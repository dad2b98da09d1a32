/* A program that others start, in x32 and in x86-64: tells what it was started with, or does what its first
 * word says. */
#include "transcript.h"
#include <fcntl.h>
#include <sys/resource.h>

extern char **environ;

static const char *mask(int (*fill)(sigset_t *)) {
    static char text[512];
    sigset_t set;
    sigemptyset(&set);
    fill(&set);
    text[0] = 0;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&set, number) == 1 && sigabbrev_np(number))
            strcat(strcat(text, " "), sigabbrev_np(number));
    return text;
}

static int blocked(sigset_t *set) { return sigprocmask(SIG_BLOCK, NULL, set); }
static int pending(sigset_t *set) { return sigpending(set); }
static int ignored(sigset_t *set) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            sigaddset(set, number);
    }
    return 0;
}

int main(int count, char **words) {
    const char *verb = count > 1 ? words[1] : "";
    if (strcmp(verb, "exit") == 0)
        return atoi(words[2]);
    if (strcmp(verb, "kill") == 0)
        return raise(atoi(words[2]));
    if (strcmp(verb, "sizes") == 0) {
        long cells = 0, length = 0;
        for (char **one = environ; *one; one++)
            cells++, length += strlen(*one) + 1;
        say("child: %d words, %ld variables of %ld bytes", count, cells, length);
        return 0;
    }
    if (strcmp(verb, "state") == 0) {
        say("child: blocked%s", mask(blocked));
        say("child: pending%s", mask(pending));
        say("child: ignored%s", mask(ignored));
        for (int fd = 0; fd < 32; fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                say("child: descriptor %d is open", fd);
        stack_t stack;
        sigaltstack(NULL, &stack);
        say("child: alternate stack %s", stack.ss_flags & SS_DISABLE ? "off" : "on");
        return 0;
    }
    say("child: pointers of %zu bytes", sizeof(void *));
    for (int i = 0; i < count; i++) {
        const char *base = strrchr(words[i], '/');
        say("child: word %d is \"%s\"", i, base ? base + 1 : words[i]);
    }
    for (char **one = environ; *one; one++)
        if (strncmp(*one, "PROGRAMS=", 9) != 0)
            say("child: variable \"%s\"", *one);
    return 7;
}
