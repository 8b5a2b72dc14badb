/* Mistakes at both ends of blocks, with large blocks, and with buffers of system calls. Arguments
 * name the mistakes. Prints what each returns. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

enum { RUNS = 12, SMALL = 64, LONG = 200 };

static volatile long sink;

APART static char *make_block(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    sink++;
    return block;
}

APART static void drop_block(char *block)
{
    free(block);
    sink++;
}

APART static long read_at(volatile char *block, long at)
{
    sink++;
    return block[at];
}

APART static void write_at(volatile char *block, long at)
{
    block[at] = 2;
    sink++;
}

APART static long read_after(void)
{
    for (int i = 0; i < RUNS; i++) {
        char *block = make_block(SMALL);
        sink += read_at(block, SMALL);
        drop_block(block);
    }
    return RUNS;
}

APART static long read_before(void)
{
    for (int i = 0; i < RUNS; i++) {
        char *block = make_block(SMALL);
        sink += read_at(block, -1);
        drop_block(block);
    }
    return RUNS;
}

APART static long write_before(void)
{
    char *block = make_block(SMALL);
    write_at(block, -9); /* A byte that malloc does not use. */
    const long bytes = (long)malloc_usable_size(block);
    drop_block(block);
    return bytes >= SMALL;
}

APART static long write_rounding(void)
{
    char *block = make_block(SMALL - 4);
    write_at(block, SMALL - 4);
    const int file = open("/dev/null", O_WRONLY);
    const long result = write(file, block, SMALL - 4);
    close(file);
    drop_block(block);
    return result;
}

APART static long use_large(void)
{
    static const long sizes[] = {20000, 131072, 131088, 500000, 1 << 20};
    for (int i = 0; i < 5; i++) {
        char *block = make_block(sizes[i]);
        drop_block(block);
        sink += read_at(block, sizes[i] - 1);
    }
    return 5;
}

APART static long pass_large(void)
{
    static const long sizes[] = {20000, 131072, 131088, 500000, 1 << 20};
    for (int i = 0; i < 5; i++) {
        char *block = make_block(sizes[i]);
        write_at(block, (sizes[i] + 15) & ~15L);
        drop_block(block);
    }
    return 5;
}

static char *freed_block(size_t bytes)
{
    char *block = make_block(bytes);
    drop_block(block);
    return block;
}

APART static long write_vector(void)
{
    const int file = open("/dev/null", O_WRONLY);
    char plain[8] = "plain";
    struct iovec parts[2] = {{plain, sizeof(plain)}, {freed_block(SMALL), SMALL}};
    const long result = writev(file, parts, 2);
    close(file);
    return result;
}

APART static long read_vector(void)
{
    const int file = open("/dev/zero", O_RDONLY);
    char plain[8];
    struct iovec parts[2] = {{plain, sizeof(plain)}, {freed_block(SMALL), SMALL}};
    const long result = readv(file, parts, 2);
    close(file);
    return result;
}

APART static long send_message(void)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct iovec part = {freed_block(SMALL), SMALL};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    const long result = sendmsg(pair[0], &message, 0);
    close(pair[0]);
    close(pair[1]);
    return result;
}

APART static long receive_message(void)
{
    int pair[2];
    char text[SMALL] = "text";
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    sink += write(pair[0], text, sizeof(text));
    struct iovec part = {freed_block(SMALL), SMALL};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    const long result = recvmsg(pair[1], &message, 0);
    close(pair[0]);
    close(pair[1]);
    return result;
}

static char *freed_path(void)
{
    char *path = make_block(32);
    memset(path, '/', 31);
    path[31] = '\0';
    drop_block(path);
    return path;
}

APART static long open_path(void)
{
    const int file = open(freed_path(), O_RDONLY);
    if (file >= 0) {
        close(file);
    }
    return 0;
}

APART static long stat_path(void)
{
    struct stat status;
    sink += stat(freed_path(), &status);
    return 0;
}

APART static long stat_into(void)
{
    return stat("/", (struct stat *)freed_block(sizeof(struct stat)));
}

APART static long count_into(void)
{
    int ends[2];
    sink += pipe(ends);
    const long result = ioctl(ends[0], FIONREAD, freed_block(8));
    close(ends[0]);
    close(ends[1]);
    return result;
}

APART static long read_too_much(void)
{
    int ends[2];
    char text[LONG] = "text";
    char *block = make_block(SMALL);
    sink += make_block(LONG)[0]; /* Without Sojourn, the bytes after the block are in this one. */
    sink += pipe(ends);
    sink += write(ends[1], text, sizeof(text));
    const long result = read(ends[0], block, LONG);
    close(ends[0]);
    close(ends[1]);
    return result;
}

APART static long open_without_end(void)
{
    char *path = make_block(SMALL);
    memset(path, '/', SMALL);
    sink += open(path, O_RDONLY);
    return 0;
}

/* The bytes up to the alignment belong to no block, and the page after them is closed. */
APART static long read_after_aligned(void)
{
    void *block = NULL;
    sink += posix_memalign(&block, 64, 100);
    sink += read_at(block, 128);
    drop_block(block);
    return 0;
}

APART static long read_into_end(void)
{
    const int file = open("/dev/zero", O_RDONLY);
    char *block = make_block(SMALL);
    sink += make_block(SMALL)[0];
    const long result = read(file, block + SMALL, SMALL / 4);
    close(file);
    return result;
}

APART static long open_at_end(void)
{
    return open(make_block(SMALL) + SMALL, O_RDONLY);
}

/* No mistake: a large block grows in steps that are small compared with it. */
APART static long grow_large(void)
{
    enum { FIRST = 20000, STEP = 64, STEPS = 2000 };
    char *block = make_block(FIRST);
    for (long i = 1; i <= STEPS; i++) {
        block = realloc(block, FIRST + i * STEP);
        block[FIRST + i * STEP - 1] = 1;
    }
    const long result = block[FIRST - 1] + block[FIRST + STEP - 1];
    free(block);
    return result;
}

static long (*const mistakes[])(void) = {
    read_after,       read_before,        write_before,  write_rounding, use_large,
    pass_large,       write_vector,       read_vector,   send_message,   receive_message,
    open_path,        stat_path,          stat_into,     count_into,     read_too_much,
    open_without_end, read_after_aligned, read_into_end, open_at_end,    grow_large};

int main(int count, char **arguments)
{
    /* Without Sojourn, freed blocks stay mapped, too. */
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 1; i < count; i++) {
        printf("%ld\n", mistakes[atoi(arguments[i])]());
    }
    return 0;
}
