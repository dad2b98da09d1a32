/* Known truth for a program that gives its descriptors numbers while another thread allocates: what is opened
 * gets the lowest free number, a file that is put in the place of another one stays open, no child has a
 * descriptor that its parent has not, and the program's own file has the one byte that it writes. It ends
 * with 0 if it saw nothing else; it prints what it saw.
 *
 *   descriptor_race FILE */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *allocates(void *unused) {
    while (!stop) {
        free(malloc(100));
    }
    return unused;
}

/* Whether a child that is forked now has a descriptor from 3 to 9. */
static int child_has_more(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 3; fd < 10; fd++) {
            if (fcntl(fd, F_GETFD) >= 0) {
                _exit(1);
            }
        }
        _exit(0);
    }
    return waitpid(child, &status, 0) != child || status != 0;
}

int main(int count, char **words) {
    long other_numbers = 0, lost = 0, children = 0;
    struct stat status;
    pthread_t thread;
    int file = count > 1 ? open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    int own = dup2(file, 20);
    if (own != 20 || close(file) != 0 || pthread_create(&thread, NULL, allocates, NULL) != 0) {
        return 9;
    }
    for (int i = 0; i < 30000; i++) {
        int fd = open("/dev/null", O_RDONLY);
        other_numbers += fd != 3;
        close(fd);
        lost += dup2(own, 3) != 3 || pwrite(3, "x", 1, 0) != 1 || close(3) != 0;
        children += i % 100 == 0 && child_has_more();
    }
    stop = 1;
    pthread_join(thread, NULL);
    fstat(own, &status);
    printf("other numbers %ld, lost %ld, children with more %ld, size %lld\n", other_numbers, lost, children,
           (long long)status.st_size);
    return other_numbers != 0 || lost != 0 || children != 0 || status.st_size != 1;
}
