/*
 * Process 1 of the oracle for what the runtime costs: makes each of /list's runs (`TIMES FAULT_AROUND
 * COMMAND`) natively and under the runtime, at fixed addresses (several runs: each a page below the one
 * before), and with so many bytes of a file mapped at a fault. It says of each run on the second serial line:
 * its name, the way, max RSS in KiB and page faults as wait4 gives them, and the runtime's own in the same
 * units, as its account has them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../runtime/x32/account_file.h"

#define ACCOUNT "/account"
/* Mappings begin below the stack's limit, from 128 MiB on (mmap_base(), arch/x86/mm/mmap.c). */
#define STACK_LIMIT (256UL << 20)
#define FAULT_AROUND "/sys/kernel/debug/fault_around_bytes"

/* Of the account: resident KiB of the process that was begun first, faults of all. */
static void own_of(long first_record, long *resident, long *faults) {
    struct account_record record;
    struct account_head head;
    int fd = open(ACCOUNT, O_RDONLY);
    *resident = *faults = 0;
    if (fd < 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
        return;
    }
    for (uint32_t i = 0; i < head.records; i++) {
        if (pread(fd, &record, sizeof record, first_record + (long)(i * sizeof record)) ==
            (ssize_t)sizeof record) {
            *resident = i == 0 ? (long)(record.resident / 1024) : *resident;
            *faults += (long)record.minor_faults;
        }
    }
    close(fd);
}

static void run(FILE *reports, const char *bytes, const char *line, long pages_lower, int through_runtime,
                long size, long first_record) {
    char copy[256], *words[16];
    int total = 0, status = 0;
    struct rusage usage;
    snprintf(copy, sizeof copy, "%s", line);
    if (through_runtime) {
        unlink(ACCOUNT);
        int fd = open(ACCOUNT, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, size) != 0) {
            return;
        }
        close(fd);
        words[total++] = "/x32run";
        words[total++] = "--account";
        words[total++] = ACCOUNT;
        words[total++] = "--";
    }
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        words[total++] = word;
    }
    words[total] = NULL;
    fflush(reports);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {STACK_LIMIT + 4096UL * (unsigned long)pages_lower, RLIM_INFINITY};
        if ((pages_lower > 0 && setrlimit(RLIMIT_STACK, &limit) != 0) || personality(ADDR_NO_RANDOMIZE) < 0) {
            _exit(126);
        }
        execv(words[0], words);
        _exit(127);
    }
    wait4(child, &status, 0, &usage);
    long resident = 0, faults = 0;
    if (through_runtime) {
        own_of(first_record, &resident, &faults);
    }
    fprintf(reports, "%s %s: %s %ld %ld %ld %ld status %d\n", bytes, line,
            through_runtime ? "runtime" : "native", usage.ru_maxrss, usage.ru_minflt, resident, faults,
            status);
    fflush(reports);
}

static int set_fault_around(const char *bytes) {
    int fd = open(FAULT_AROUND, O_WRONLY);
    int is_set = fd >= 0 && write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes);
    close(fd);
    return is_set;
}

int main(void) {
    char line[256];
    mkdir("/proc", 0755);
    mkdir("/dev", 0755);
    mkdir("/sys", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
    FILE *reports = fopen("/dev/ttyS1", "w"), *list = fopen("/list", "r");
    if (reports == NULL || list == NULL) {
        reboot(RB_POWER_OFF);
    }
    long size = 0, first_record = 0;
    if (fgets(line, sizeof line, list) == NULL || sscanf(line, "%ld %ld", &size, &first_record) != 2) {
        fprintf(reports, "no list\n");
    }
    while (fgets(line, sizeof line, list) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *bytes = strchr(line, ' ') + 1, *name = strchr(bytes, ' ');
        long times = atol(line);
        *name++ = 0;
        if (!set_fault_around(bytes)) {
            fprintf(reports, "%s: %s bytes could not be set\n", FAULT_AROUND, bytes);
        }
        for (long i = 0; i < times; i++) {
            run(reports, bytes, name, times > 1 ? i + 1 : 0, 0, size, first_record);
            run(reports, bytes, name, times > 1 ? i + 1 : 0, 1, size, first_record);
        }
    }
    fprintf(reports, "@@@\n");
    fflush(reports);
    fclose(reports);
    sync();
    reboot(RB_AUTOBOOT);
    return 0;
}
