/*
 * Name lookups that are slow or fail. `NameService` compiles this file and loads it into child processes with LD_PRELOAD.
 *
 * The variable REDLOCK_NAMES is the path of a file with two numbers: the delay of each lookup in milliseconds, and 1 if the lookup then
 * fails. Each delayed or failed lookup appends a byte to the file with the suffix ".log".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* Appends a byte to the log. */
static void count(const char *file)
{
    char log[4096];
    snprintf(log, sizeof log, "%s.log", file);
    int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (out < 0 || write(out, ".", 1) != 1)
        abort();
    close(out);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    const char *file = getenv("REDLOCK_NAMES");
    FILE *settings = file ? fopen(file, "r") : NULL;
    unsigned millis = 0, fails = 0;
    if (settings && fscanf(settings, "%u %u", &millis, &fails) != 2)
        abort();
    if (settings)
        fclose(settings);
    if (millis || fails)
        count(file);
    struct timespec delay = { millis / 1000, millis % 1000 * 1000000L };
    nanosleep(&delay, NULL);
    return fails ? EAI_AGAIN : ((lookup *)dlsym(RTLD_NEXT, "getaddrinfo"))(name, service, hints, found);
}
