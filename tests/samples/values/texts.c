#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
KEPT int on_stack(const char *text)
{
    return text[0];
}
KEPT int on_heap(const char *text)
{
    return text[0];
}
KEPT int literal(const char *text)
{
    return text[0];
}
KEPT int at_end(const char *text)
{
    return text == NULL;
}
KEPT long put(int fd, const void *data, unsigned long count)
{
    return data == NULL ? fd : (long)count;
}
KEPT long apart(unsigned count, double x, int other, const char *data)
{
    return (long)(count + x) + other + (data != NULL);
}
static void fill(char *text, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        text[i] = (char)('a' + (bytes + i) % 26);
    }
    text[bytes] = 0;
}
static void *run(void *none)
{
    static const int lengths[] = {0, 1, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 5000};
    char text[5001];
    (void)none;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char *copy = malloc((size_t)lengths[i] + 1);
        fill(text, lengths[i]);
        memcpy(copy, text, (size_t)lengths[i] + 1);
        on_stack(text);
        on_heap(copy);
        put(1, copy, (unsigned long)lengths[i]);
        apart((unsigned)lengths[i], 0.5, 7, text);
        free(copy);
    }
    return NULL;
}
int main(int count, char **arguments)
{
    pthread_t thread;
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)arguments;
    mprotect(pages + 2 * 4096, 4096, PROT_NONE);
    memset(pages, 'x', 2 * 4096);
    if (count > 1) { /* makes only the calls that the test counts */
        for (int i = 0; i < 50; i++) {
            literal("a literal");
            on_heap(pages);
        }
        return 0;
    }
    at_end(pages + 2 * 4096 - 100); /* the text has no end before unreadable memory */
    at_end(pages + 2 * 4096);
    at_end(NULL);
    put(2, pages + 2 * 4096 - 50, 100);
    put(3, NULL, 9);
    literal("a literal");
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    return 0;
}
