/*
 * Process 1 of the oracle for what the runtime costs: makes each of /list's runs (`TIMES COMMAND`) natively and under the
 * runtime, with addresses that are random if there is more than one, and
 * says of each on the second serial line: its name, the way, max RSS in KiB and page faults as wait4 gives them, and the
 * runtime's own in the same units, as its account has them.
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

#define ACCOUNT "/account"

/* Of the account (runtime/x32/account.h): resident bytes of the process that was begun first, faults of all. */
static void own_of(long first_record, long *resident, long *faults) {
    uint64_t record[16];
    uint32_t head[5] = {0};
    int fd = open(ACCOUNT, O_RDONLY);
    *resident = *faults = 0;
    if (fd < 0 || pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head) {
        return;
    }
    for (uint32_t i = 0; i < head[4]; i++) {
        if (pread(fd, record, sizeof record, first_record + (long)(i * sizeof record)) == (ssize_t)sizeof record) {
            *resident = i == 0 ? (long)(record[1] / 1024) : *resident;
            *faults += (long)record[5];
        }
    }
    close(fd);
}

static void run(FILE *reports, const char *line, int fixed, int through_runtime, long size, long first_record) {
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
        if (fixed) {
            personality(ADDR_NO_RANDOMIZE);
        }
        execv(words[0], words);
        _exit(127);
    }
    wait4(child, &status, 0, &usage);
    long resident = 0, faults = 0;
    if (through_runtime) {
        own_of(first_record, &resident, &faults);
    }
    fprintf(reports, "%s: %s %ld %ld %ld %ld status %d\n", line, through_runtime ? "runtime" : "native",
            usage.ru_maxrss, usage.ru_minflt, resident, faults, status);
    fflush(reports);
}

int main(void) {
    char line[256];
    mkdir("/proc", 0755);
    mkdir("/dev", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
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
        char *name = strchr(line, ' ') + 1;
        long times = atol(line);
        for (long i = 0; i < times; i++) {
            run(reports, name, times == 1, 0, size, first_record);
            run(reports, name, times == 1, 1, size, first_record);
        }
    }
    fprintf(reports, "@@@\n");
    fflush(reports);
    fclose(reports);
    sync();
    reboot(RB_AUTOBOOT);
    return 0;
}
