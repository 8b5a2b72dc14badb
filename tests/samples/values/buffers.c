#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __clang__
#define KEPT __attribute__((noinline, used))
#else
#define KEPT __attribute__((noipa))
#endif
enum { SIZE = 700, THREADS = 4, ROUNDS = 50 };
static volatile long done;
KEPT long buf_fill(int key, char *buffer, unsigned long size)
{
    const long bytes = key % 7 == 3 ? -1 : (key * 37L) % (long)size;
    if (key % 11 == 5) { /* calls itself with another buffer first */
        char below[SIZE];
        done += buf_fill(key + 1000000, below, sizeof(below));
    }
    memset(buffer, 'a' + key % 26, bytes > 0 ? (size_t)bytes : 0);
    memcpy(buffer, "text", bytes > 4 ? 4 : 0);
    return bytes;
}
KEPT int buf_short(char *buffer, int key)
{
    memset(buffer, 'A' + key % 26, 8);
    __asm__ volatile("" ::: "memory");
    return key % 5 - 1;
}
static void say(const char *name, int key, long bytes, const char *buffer)
{
    printf("%s %d %ld %.*s\n", name, key, bytes, bytes > 0 ? (int)bytes : 0, buffer);
}
static void *run(void *first)
{
    char buffer[SIZE];
    for (int i = 0; i < ROUNDS; i++) {
        const int key = (int)(long)first + i;
        const long bytes = buf_fill(key, buffer, sizeof(buffer));
        say("buf_fill", key, bytes, buffer);
    }
    return NULL;
}
static void handle(int signal)
{
    char buffer[SIZE];
    say("buf_fill", -signal, buf_fill(-signal, buffer, sizeof(buffer)), buffer);
}
int main(void)
{
    pthread_t threads[THREADS];
    char buffer[8];
    int ends[2];
    signal(SIGUSR1, handle);
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, (void *)(i * 1000));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    raise(SIGUSR1);
    for (int i = 0; i < 10; i++) {
        const int bytes = buf_short(buffer, i);
        say("buf_short", i, bytes, buffer);
    }
    if (pipe(ends) != 0 || write(ends[1], "through a pipe", 14) != 14) {
        return 1;
    }
    char piped[64];
    say("read", ends[0], read(ends[0], piped, 9), piped);
    say("read", ends[0], read(ends[0], piped, sizeof(piped)), piped);
    say("read", -1, read(-1, piped, sizeof(piped)), piped);
    struct {
        char buffer[4], behind[60];
    } cut;
    memset(cut.behind, '!', sizeof(cut.behind));
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0 || send(ends[1], piped, 40, 0) != 40 ||
        recv(ends[0], cut.buffer, sizeof(cut.buffer), MSG_TRUNC) != 40) {
        return 2;
    }
    return 0;
}
