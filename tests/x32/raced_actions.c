/*
 * flags: -pthread
 *
 * Two threads change the action of a signal at the same time: what sigaction says is what the signal does.
 */
#include "transcript.h"
#include <pthread.h>

enum { ROUNDS = 20000 };
static volatile int begun, ended_at, handled;
static void handle(int number) { handled += number > 0; }

static void wait_for(volatile int *what, int value) {
    for (int looks = 0; *what != value;)
        if (++looks % 4096 == 0)
            sched_yield();
}

static void *ignore(void *nothing) {
    for (int round = 1; round <= ROUNDS; round++) {
        wait_for(&begun, round);
        signal(SIGUSR1, SIG_IGN);
        ended_at = round;
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    int wrong = 0;
    pthread_create(&thread, NULL, ignore, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        begun = round;
        for (volatile int wait = round % 64 * 8; wait > 0; wait--)
            ;
        signal(SIGUSR1, handle);
        wait_for(&ended_at, round);
        struct sigaction now;
        sigaction(SIGUSR1, NULL, &now);
        handled = 0;
        raise(SIGUSR1);
        wrong += handled != (now.sa_handler == handle);
    }
    pthread_join(thread, NULL);
    VALUE(wrong);
    return 0;
}
