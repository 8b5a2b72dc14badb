#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
enum { ROUNDS = 20000, PAGE = 4096, ALTERNATIVE = 16 * 1024 };
static volatile int kept;
KEPT void vanishing(const char *text)
{
    kept = text == NULL;
}
KEPT void changing(const char *text)
{
    kept = text == NULL;
}
KEPT void nowhere(const char *text, int number)
{
    kept = number + (text == NULL);
}
KEPT void in_handler(const char *text)
{
    kept = text == NULL;
}
KEPT void on_coroutine(const char *text)
{
    kept = text == NULL;
}
static _Atomic(char *) page;
static _Atomic int is_ending;
static void *give_back(void *none)
{
    while (!is_ending) {
        munmap(page, PAGE);
        mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(page, 'p', PAGE - 1);
    }
    return none;
}
static char shared[300];
static void *change(void *none)
{
    for (char c = 'a'; !is_ending; c = c == 'z' ? 'a' : (char)(c + 1)) {
        memset(shared, c, sizeof(shared)); /* without a terminating zero */
    }
    return none;
}
static void handle(int number)
{
    char text[1001];
    (void)number;
    memset(text, 'h', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    in_handler(text);
}
static ucontext_t caller, coroutine;
static void run_coroutine(void)
{
    char text[1001];
    memset(text, 'c', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (int i = 0; i < 3; i++) {
        on_coroutine(text);
        swapcontext(&coroutine, &caller);
    }
}
/* Returns memory that the kernel maps as a device's, or NULL if this kernel has none. */
static char *device_memory(void)
{
    char line[256];
    unsigned long address = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (address == 0 && fgets(line, sizeof(line), maps) != NULL) {
        address = strstr(line, "[vvar]") != NULL ? strtoul(line, NULL, 16) : 0;
    }
    fclose(maps);
    return (char *)address;
}
/* Returns a stack directly above memory that cannot be accessed. */
static char *small_stack(size_t bytes)
{
    char *memory =
        mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, PAGE, PROT_NONE);
    return memory + PAGE;
}
int main(int count, char **arguments)
{
    pthread_t threads[2];
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, 'p', PAGE - 1);
    memset(shared, 'a', sizeof(shared));
    pthread_create(&threads[0], NULL, give_back, NULL);
    pthread_create(&threads[1], NULL, change, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        vanishing(page);
        changing(shared);
    }
    is_ending = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    const int file = open(arguments[count - 1], O_RDWR);
    char *behind = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int device = open("/dev/zero", O_RDWR);
    char *zeros = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device, 0);
    char *guarded = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nowhere(behind, 1);        /* memory with the file's text */
    nowhere(behind + PAGE, 2); /* reading it raises SIGBUS */
    nowhere(zeros, 3);
    nowhere(guarded, 4);
    nowhere((char *)1, 5);
    nowhere((char *)0x8000000000000000, 6);
    nowhere((char *)-1, 7);
    nowhere((char *)0xffffffffff600000, 8);
    nowhere(device_memory(), 9);

    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = small_stack(ALTERNATIVE), .ss_size = ALTERNATIVE};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 3; i++) {
        raise(SIGUSR1);
    }
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = small_stack(ALTERNATIVE);
    coroutine.uc_stack.ss_size = ALTERNATIVE;
    makecontext(&coroutine, run_coroutine, 0);
    for (int i = 0; i < 3; i++) {
        swapcontext(&caller, &coroutine);
    }
    puts("survived");
    return 0;
}
