/* Mistakes with memory of malloc that the zombie monitor must find, one for each number. Each is in
 * a function with its own name, so that tests can compare stacks. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))

static volatile char sink;
static char line[64];
static char got[64];

KEPT static char *make_block(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 'x', bytes);
    return block;
}

KEPT static void drop_block(char *block)
{
    free(block);
    sink = 0;
}

KEPT static void read_block(const volatile char *block, long offset)
{
    sink = block[offset];
}

KEPT static void write_block(volatile char *block, long offset)
{
    block[offset] = 'y';
    sink = 1;
}

KEPT static void read_after_free(void)
{
    char *block = make_block(40);
    drop_block(block);
    read_block(block, 8);
}

KEPT static void write_after_free(void)
{
    char *block = make_block(100);
    drop_block(block);
    write_block(block, 99);
}

KEPT static void read_after_free_of_pages(void)
{
    char *block = make_block(10000);
    drop_block(block);
    read_block(block, 9000);
}

KEPT static void free_twice(void)
{
    char *block = make_block(64);
    drop_block(block);
    drop_block(block);
}

KEPT static void free_inside(void)
{
    char *block = make_block(64);
    drop_block(block + 16);
    drop_block(block);
}

/* The monitor places a block at one of the two ends of its pages. With 16 blocks, some overflows
 * reach a closed page. */
KEPT static void overflow(void)
{
    for (int i = 0; i < 16; i++) {
        char *block = make_block(4096);
        write_block(block, 4096);
        drop_block(block);
    }
}

KEPT static void underflow(void)
{
    for (int i = 0; i < 16; i++) {
        char *block = make_block(4096);
        write_block(block, -1);
        drop_block(block);
    }
}

KEPT static void overflow_within_page(void)
{
    char *block = make_block(41);
    write_block(block, 41);
    drop_block(block);
}

KEPT static void read_after_realloc(void)
{
    char *block = make_block(48);
    char *moved = realloc(block, 480);
    read_block(block, 1);
    drop_block(moved);
}

KEPT static void realloc_after_free(void)
{
    char *block = make_block(48);
    drop_block(block);
    char *moved = realloc(block, 96);
    write_block(moved, 95);
    drop_block(moved);
    sink = 3;
}

KEPT static void read_zeroed_after_free(void)
{
    char *block = calloc(4, 30);
    drop_block(block);
    read_block(block, 119);
}

KEPT static void read_string_after_free(void)
{
    char *block = strdup("a string of the C library's own allocation");
    drop_block(block);
    read_block(block, 5);
}

static void *free_in_thread(void *block)
{
    drop_block(block);
    return NULL;
}

KEPT static void read_after_free_in_thread(void)
{
    pthread_t thread;
    char *block = make_block(80);
    if (pthread_create(&thread, NULL, free_in_thread, block) == 0) {
        pthread_join(thread, NULL);
    }
    read_block(block, 79);
}

KEPT static void read_after_free_in_library(void)
{
    char *block = make_block(32);
    block[31] = '\0';
    drop_block(block);
    sink = (char)(strlen(block) != 0);
}

KEPT static void write_file(int file, const char *block)
{
    sink = (char)write(file, block + 3, 5000);
}

KEPT static void write_file_after_free(void)
{
    int ends[2];
    char *block = make_block(6000);
    drop_block(block);
    if (pipe(ends) == 0) {
        write_file(ends[1], block);
        if (read(ends[0], got, sizeof(got)) != sizeof(got)) { /* the write must not have failed */
            exit(3);
        }
        close(ends[0]);
        close(ends[1]);
    }
}

KEPT static void receive(int file, char *block)
{
    sink = (char)recv(file, block, 16, 0);
}

KEPT static void receive_after_free(void)
{
    int ends[2];
    char *block = make_block(24);
    drop_block(block);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        if (write(ends[1], "sixteen letters.", 16) != 16) {
            exit(3);
        }
        receive(ends[0], block);
        close(ends[0]);
        close(ends[1]);
    }
}

KEPT static void read_aligned_after_free(void)
{
    void *block = NULL;
    if (posix_memalign(&block, 256, 300) != 0 || (unsigned long)block % 256 != 0) {
        exit(3);
    }
    drop_block(block);
    read_block(block, 299);
    block = aligned_alloc(64, 128);
    if ((unsigned long)block % 64 != 0) {
        exit(3);
    }
    drop_block(block);
    read_block(block, 127);
    block = reallocarray(NULL, 11, 7);
    drop_block(block);
    read_block(block, 76);
}

static char *handled;

/* A separate function, because the number of reports for one place is limited. */
KEPT static void read_masked(const volatile char *block, long offset)
{
    sink = (char)(block[offset] + 1); /* differs from the code of the other readers */
}

static void read_in_handler(int number)
{
    (void)number;
    read_masked(handled, 20);
}

/* A fault kills a program that has the fault's signal blocked. Tests this in a thread and in a
 * handler. */
KEPT static void read_after_free_with_signals_blocked(void)
{
    sigset_t all;
    sigset_t before;
    struct sigaction action = {.sa_handler = read_in_handler};
    char *block = make_block(34);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    drop_block(block);
    read_masked(block, 33);
    sigprocmask(SIG_SETMASK, &before, NULL);
    handled = make_block(21);
    drop_block(handled);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
}

KEPT static void read_after_free_in_child(void)
{
    char *block = make_block(56);
    drop_block(block);
    const pid_t child = fork();
    if (child == 0) {
        read_block(block, 55);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

KEPT static void no_mistake(void)
{
    for (int i = 0; i < 1000; i++) {
        char *block = make_block((size_t)(i * 7 % 5000 + 1));
        block = realloc(block, (size_t)(i * 13 % 7000 + 1));
        block[i * 13 % 7000] = 'z';
        drop_block(block);
    }
}

static void (*const mistakes[])(void) = {no_mistake,
                                         read_after_free,
                                         write_after_free,
                                         read_after_free_of_pages,
                                         free_twice,
                                         free_inside,
                                         overflow,
                                         underflow,
                                         overflow_within_page,
                                         read_after_realloc,
                                         realloc_after_free,
                                         read_zeroed_after_free,
                                         read_string_after_free,
                                         read_after_free_in_thread,
                                         read_after_free_in_library,
                                         read_after_free_in_child,
                                         write_file_after_free,
                                         receive_after_free,
                                         read_aligned_after_free,
                                         read_after_free_with_signals_blocked};

enum { KEPT_BLOCKS = 100 };

static char *kept[KEPT_BLOCKS];

static void keep(void)
{
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        kept[i] = make_block((size_t)(i * 37 + 1));
    }
}

/* Reallocates, reads and frees the kept blocks. The test's table does not have this function. */
static void drop_kept(void)
{
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        kept[i] = realloc(kept[i], (size_t)(i * 41 + 1));
        sink = (char)(malloc_usable_size(kept[i]) + (size_t)(kept[i][0] == 'x'));
        free(kept[i]);
    }
}

/* Writes to the freed blocks. This would kill the program if the memory were unmapped. */
static void touch_kept(void)
{
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        write_block(kept[i], 0);
        kept[i] = NULL;
    }
}

static int obey(const char *word)
{
    const unsigned long number = strtoul(word, NULL, 10);
    if (strcmp(word, "keep") == 0) {
        keep();
    } else if (strcmp(word, "drop") == 0) {
        drop_kept();
    } else if (strcmp(word, "touch") == 0) {
        touch_kept();
    } else if (number < sizeof(mistakes) / sizeof(mistakes[0])) {
        mistakes[number]();
    } else {
        return 2;
    }
    printf("%s\n", word);
    fflush(stdout);
    return 0;
}

/* Reads the words from the command line, or one from each line of the input. */
int main(int argc, char **argv)
{
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "-") == 0) {
        puts("ready");
        fflush(stdout);
        while (status == 0 && fgets(line, sizeof(line), stdin) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            status = obey(line);
        }
        return status;
    }
    for (int i = 1; i < argc && status == 0; i++) {
        status = obey(argv[i]);
    }
    return status;
}
