/* A server that overwrites its environment, as those do that show their state as their title (nginx,
 * redis-server); with an argument, one that closes all descriptors, as daemons do. It is a session of its
 * own, writes the file "begun", and sleeps. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    (void)argv;
    char *first = environ[0], *end = first;
    if (fork() > 0)
        return 0;
    setsid();
    for (char **one = environ; *one; one++)
        end = *one + strlen(*one) + 1;
    if (argc > 1)
        closefrom(3);
    else
        memset(first, 0, (size_t)(end - first));
    FILE *begun = fopen("begun", "w");
    if (!begun || fclose(begun) != 0)
        return 1;
    sleep(600);
    return 0;
}
