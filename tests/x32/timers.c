/*
 * timer_create (row 526) with each way to tell, and the calls on a timer; mq_notify (527) and message queues.
 */
#include "transcript.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#ifndef sigev_notify_thread_id /* glibc */
#define sigev_notify_thread_id _sigev_un._tid
#endif

static volatile siginfo_t last;
static volatile int count;
static void handler(int number, siginfo_t *info, void *context) {
    (void)context, (void)number;
    memcpy((void *)&last, info, sizeof last);
    count++;
}
static void wait_for(int wanted) {
    for (int i = 0; i < 500 && count < wanted; i++)
        poll(NULL, 0, 10);
}
static volatile int notified;
static void notify(union sigval value) { notified = value.sival_int; }

int main(void) {
    VALUE(sizeof(struct sigevent));
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 4711};
    timer_t timer, other;
    struct itimerspec once = {.it_value = {0, 5000000}}, now, off = {0};
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    RESULT(timer_settime(timer, 0, &once, NULL));
    wait_for(1);
    say("signal %d code %d value %d overrun %d", last.si_signo, last.si_code, last.si_value.sival_int,
        last.si_overrun);
    IS(last.si_timerid == (int)(uintptr_t)timer);
    event.sigev_value.sival_ptr = (void *)0xfedcba98;
    RESULT(timer_create(CLOCK_REALTIME, &event, &other));
    RESULT(timer_settime(other, 0, &once, NULL));
    wait_for(2);
    HEX((uintptr_t)last.si_value.sival_ptr);
    RESULT(timer_gettime(timer, &now));
    say("left: %lld %ld, every %lld", (long long)now.it_value.tv_sec, (long)now.it_value.tv_nsec,
        (long long)now.it_interval.tv_sec);
    once = (struct itimerspec){.it_value = {1000, 5}, .it_interval = {3000000000LL, 7}};
    RESULT(timer_settime(timer, 0, &once, NULL));
    RESULT(timer_gettime(timer, &now));
    IS(now.it_value.tv_sec >= 995 && now.it_value.tv_sec <= 1000);
    say("every %lld %ld", (long long)now.it_interval.tv_sec, (long)now.it_interval.tv_nsec);
    RESULT(timer_settime(timer, 0, &off, &now));
    IS(now.it_value.tv_sec >= 990);
    RESULT(timer_settime(timer, TIMER_ABSTIME, &(struct itimerspec){.it_value = {1, 0}}, NULL));
    wait_for(3);
    VALUE(count);
    RESULT(timer_getoverrun(timer));
    RESULT(timer_delete(timer));
    RESULT(timer_delete(timer));
    RESULT(timer_settime(timer, 0, &once, NULL));
    RESULT(timer_settime(other, 0, &(struct itimerspec){.it_value = {0, 1000000000}}, NULL));
    event.sigev_notify = 77;
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99};
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    event = (struct sigevent){.sigev_notify = SIGEV_NONE};
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    RESULT(timer_create(77, &event, &timer));
    int id;
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, (void *)8, &id));
    RESULT(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, (void *)8));
    RESULT(timer_create(CLOCK_MONOTONIC, NULL, &timer));
    RESULT(timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, 1000000}}, NULL));
    wait_for(4);
    say("default: %s code %d", sigabbrev_np(last.si_signo), last.si_code);
    IS(last.si_value.sival_int == (int)(uintptr_t)timer);
    event = (struct sigevent){
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 99};
    event.sigev_notify_thread_id = gettid();
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    RESULT(timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, 1000000}}, NULL));
    wait_for(5);
    say("to the thread: %d", last.si_value.sival_int);
    event.sigev_notify_thread_id = 1;
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    event = (struct sigevent){
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify, .sigev_value.sival_int = 31};
    RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
    RESULT(timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, 1000000}}, NULL));
    for (int i = 0; i < 500 && !notified; i++)
        poll(NULL, 0, 10);
    say("in a thread: %d", notified);

    say("message queues");
    char name[64];
    snprintf(name, sizeof name, "/oracle-%d", getpid());
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 64};
    mqd_t queue = SUCCESS(mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attributes));
    count = 0;
    event =
        (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 808};
    RESULT(mq_notify(queue, &event));
    RESULT(mq_notify(queue, &event));
    RESULT(mq_send(queue, "first", 5, 3));
    wait_for(1);
    say("signal %d code %d value %d pid %d", last.si_signo, last.si_code, last.si_value.sival_int,
        last.si_pid == getpid());
    RESULT(mq_send(queue, "urgent", 6, 9));
    VALUE(count);
    char room[64];
    unsigned priority = 0;
    RESULT(mq_receive(queue, room, sizeof room, &priority));
    VALUE(priority);
    RESULT(mq_receive(queue, room, 10, &priority));
    RESULT(mq_getattr(queue, &attributes));
    say("flags %ld, %ld of %ld messages of %ld bytes", (long)attributes.mq_flags, (long)attributes.mq_curmsgs,
        (long)attributes.mq_maxmsg, (long)attributes.mq_msgsize);
    attributes.mq_flags = 0;
    RESULT(mq_setattr(queue, &attributes, NULL));
    RESULT(mq_receive(queue, room, sizeof room, NULL));
    struct timespec past = {1, 0};
    RESULT(mq_timedreceive(queue, room, sizeof room, NULL, &past));
    event.sigev_notify = SIGEV_NONE;
    RESULT(mq_notify(queue, &event));
    RESULT(mq_notify(queue, NULL));
    event.sigev_notify = SIGEV_THREAD;
    notified = 0;
    event.sigev_notify_function = notify, event.sigev_notify_attributes = NULL;
    RESULT(mq_notify(queue, &event));
    RESULT(mq_send(queue, "x", 1, 0));
    for (int i = 0; i < 500 && !notified; i++)
        poll(NULL, 0, 10);
    say("in a thread: %d", notified);
    event.sigev_notify = 55;
    RESULT(mq_notify(queue, &event));
    RESULT(mq_close(queue));
    RESULT(mq_unlink(name));
    RESULT(mq_notify(250, &event));
    return 0;
}
