/*
 * Clocks, sleeping, interval timers, times, limits, and the 64 bits of what they hold.
 */
#include "transcript.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>

static volatile int alarms;
static void handler(int number) { alarms += number == SIGALRM || number == SIGVTALRM || number == SIGPROF; }

int main(void) {
    static const clockid_t clocks[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 12, -1};
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec now = {-1, -1}, resolution;
        int result = clock_gettime(clocks[i], &now), error = errno;
        int known = clock_getres(clocks[i], &resolution);
        say("clock %d: %s, %s", (int)clocks[i],
            result                                                            ? error_name(error)
            : now.tv_sec >= 0 && now.tv_nsec >= 0 && now.tv_nsec < 1000000000 ? "sane"
                                                                              : "odd",
            known ? error_name(errno) : "resolution known");
    }
    struct timespec a, b, nap = {0, 30000000};
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 1000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (b.tv_sec < a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec < a.tv_nsec))
            say("the clock went back");
        a = b;
    }
    RESULT(nanosleep(&nap, NULL));
    clock_gettime(CLOCK_MONOTONIC, &b);
    IS((b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec >= 30000000);
    nap.tv_nsec = -1;
    RESULT(nanosleep(&nap, NULL));
    RESULT(nanosleep((void *)8, NULL));
    NUMBER(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &nap, NULL));
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &a, NULL));
    RESULT(clock_settime(CLOCK_REALTIME, &a));
    RESULT(clock_settime(CLOCK_MONOTONIC, &a));
    RESULT(settimeofday(&(struct timeval){1, 0}, NULL));
    clockid_t of_process;
    NUMBER(clock_getcpuclockid(getpid(), &of_process));
    RESULT(clock_gettime(of_process, &a));

    say("timers");
    signal(SIGALRM, handler);
    signal(SIGVTALRM, handler);
    signal(SIGPROF, handler);
    struct itimerval when = {{3000000000LL, 7}, {4000000000LL, 8}}, now;
    VALUE(sizeof when);
    RESULT(setitimer(ITIMER_REAL, &when, NULL));
    RESULT(getitimer(ITIMER_REAL, &now));
    IS(now.it_value.tv_sec > 3999999000LL && now.it_interval.tv_sec == 3000000000LL &&
       now.it_interval.tv_usec == 7);
    when = (struct itimerval){{0, 0}, {0, 1000}};
    RESULT(setitimer(ITIMER_REAL, &when, &now));
    IS(now.it_value.tv_sec > 3999999000LL);
    while (alarms < 1)
        pause();
    RESULT(setitimer(ITIMER_VIRTUAL, &when, NULL));
    while (alarms < 2)
        ;
    RESULT(setitimer(ITIMER_PROF, &when, NULL));
    while (alarms < 3)
        getppid();
    VALUE(alarms);
    RESULT(setitimer(7, &when, NULL));
    when.it_value.tv_usec = 1000000;
    RESULT(setitimer(ITIMER_REAL, &when, NULL));
    RESULT(alarm(1000));
    IS(alarm(0) > 990);

    say("use");
    struct tms use;
    IS(times(&use) != -1 && use.tms_utime >= 0 && use.tms_cutime == 0);
    IS((long long)clock() >= 0);
    struct sysinfo info;
    VALUE(sizeof info);
    RESULT(sysinfo(&info));
    IS(info.totalram > 0 && (unsigned long long)info.totalram * info.mem_unit > 500u << 20 &&
       info.procs > 0 && info.uptime > 0);
    struct utsname name;
    RESULT(uname(&name));
    TEXT(name.sysname);
    TEXT(name.machine);
    RESULT(uname((void *)8));
    struct timex adjust;
    memset(&adjust, 0, sizeof adjust);
    VALUE(sizeof adjust);
    SUCCESS(adjtimex(&adjust));
    IS(adjust.time.tv_sec > 1000000000 && adjust.tick > 0);
    adjust.modes = ADJ_TICK;
    RESULT(adjtimex(&adjust));

    say("limits");
    struct rlimit limit, old;
    VALUE(sizeof limit);
    RESULT(getrlimit(RLIMIT_NOFILE, &limit));
    VALUE(limit.rlim_cur);
    limit.rlim_cur = 20;
    RESULT(setrlimit(RLIMIT_NOFILE, &limit));
    RESULT(dup2(1, 20));
    int last = 0, one;
    while ((one = dup(1)) >= 0)
        last = one;
    say("last %d: %s", last, error_name(errno));
    RESULT(getrlimit(RLIMIT_CORE, &limit));
    VALUE(limit.rlim_cur);
    RESULT(prlimit(0, RLIMIT_FSIZE, NULL, &old));
    IS(old.rlim_cur == RLIM_INFINITY);
    HEX(old.rlim_cur);
    limit = (struct rlimit){5LL << 32, RLIM_INFINITY};
    RESULT(prlimit(0, RLIMIT_FSIZE, &limit, NULL));
    RESULT(prlimit(0, RLIMIT_FSIZE, NULL, &old));
    VALUE(old.rlim_cur);
    limit = (struct rlimit){2, 1};
    RESULT(setrlimit(RLIMIT_FSIZE, &limit));
    RESULT(getrlimit(99, &limit));
    RESULT(prlimit(1 << 30, RLIMIT_FSIZE, NULL, &old));
    /* Who runs this may have been started with less priority already. */
    int first = getpriority(PRIO_PROCESS, 0);
    IS(syscall(SYS_getpriority, PRIO_PROCESS, 0) == 20 - first);
    RESULT(setpriority(PRIO_PROCESS, 0, 17));
    RESULT(getpriority(PRIO_PROCESS, 0));
    RESULT(syscall(SYS_getpriority, PRIO_PROCESS, 0));
    RESULT(setpriority(PRIO_PROCESS, 0, -5));
    RESULT(nice(1));

    say("scheduling");
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    IS(sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 0);
    IS(syscall(SYS_sched_getaffinity, 0, sizeof cpus, &cpus) > 0);
    RESULT(syscall(SYS_sched_getaffinity, 0, 3, &cpus));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &cpus))
        cpu++;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    RESULT(sched_setaffinity(0, sizeof cpus, &cpus));
    IS(sched_getcpu() == cpu);
    CPU_ZERO(&cpus);
    RESULT(sched_setaffinity(0, sizeof cpus, &cpus));
    RESULT(sched_getscheduler(0));
    struct sched_param parameter = {.sched_priority = 5};
    RESULT(sched_setscheduler(0, SCHED_FIFO, &parameter));
    RESULT(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}));
    RESULT(sched_getscheduler(0));
    RESULT(sched_getparam(0, &parameter));
    VALUE(parameter.sched_priority);
    RESULT(sched_get_priority_max(SCHED_FIFO));
    RESULT(sched_rr_get_interval(0, &a));
    IS(a.tv_sec == 0 && a.tv_nsec >= 0);
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } attributes = {0};
    RESULT(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0));
    say("size %u policy %u nice %d", attributes.size, attributes.policy, attributes.nice);
    RESULT(sched_yield());
    return 0;
}
