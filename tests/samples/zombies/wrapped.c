/* Mistakes behind functions that only wrap the allocator. Two are in functions with the same code.
 * One is in a recursion that reaches it at two depths. Prints nothing. */
#include <stdlib.h>

#define PART __attribute__((noinline))

volatile int sink;

PART void *xmalloc(size_t size)
{
    void *block = malloc(size);
    sink++;
    return block;
}

PART void xfree(void *block)
{
    free(block);
    sink++;
}

PART void ref_put(int *references)
{
    if (--*references == 0) {
        xfree(references);
    }
    sink++;
}

PART void parse_header(void)
{
    char *header = xmalloc(40);
    xfree(header);
    xfree(header);
    sink++;
}

PART void close_socket(void)
{
    char *buffer = xmalloc(80);
    xfree(buffer);
    xfree(buffer);
    sink++;
}

PART void image_done(void)
{
    int *references = xmalloc(64);
    *references = 1;
    ref_put(references);
    ref_put(references);
    sink++;
}

PART void audio_done(void)
{
    int *references = xmalloc(64);
    *references = 1;
    ref_put(references);
    ref_put(references);
    sink++;
}

PART void descend(int depth, char *block)
{
    if (depth > 0) {
        descend(depth - 1, block);
    } else {
        xfree(block);
        xfree(block);
    }
    sink++;
}

int main(void)
{
    parse_header();
    close_socket();
    image_done();
    audio_done();
    descend(1, xmalloc(24));
    descend(9, xmalloc(24));
    return 0;
}
