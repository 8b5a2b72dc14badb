/* Measures memory and time of a call graph that is made from the blocks of a recording, as a
 * profile and the collector make it.
 *
 *   path_bench DATABASE [ROUNDS]
 *
 * The blocks of the busiest stream are decoded and added to an empty graph, ROUNDS + 1 times. This
 * stream must be number 1 of its session. The bench prints the number of call paths and, for each
 * path, the bytes of the heap and of resident memory. It also prints the ns of CPU for each call,
 * decoding included, which is the least of the rounds. */
#include "proto/callgraph/callgraph.h"
#include "tests/bench/recorded_blocks.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BLOCKS = 1 << 16 };

static void fail(const char *what)
{
    fprintf(stderr, "path_bench: %s\n", what);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static size_t resident_bytes(void)
{
    unsigned long all = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2) {
        fail("/proc/self/statm cannot be read");
    }
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Adds all blocks. Returns how many calls ended. */
static uint64_t apply_all(const recorded_blocks *all, sj_block_decoder *decoder,
                          sj_callgraph *graph)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < all->count; i++) {
        const sj_slice bytes = {.data = all->blocks[i].bytes, .size = all->blocks[i].size};
        sj_block block;
        sj_block_summary summary;
        if (sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block) != SJ_OK ||
            sj_callgraph_apply(graph, &block, NULL, NULL, &summary) != SJ_OK) {
            fail("a block cannot be added");
        }
        calls += summary.ended_calls;
    }
    return calls;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fail("usage: path_bench DATABASE [ROUNDS]");
    }
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    recorded_blocks all;
    sj_block_decoder *decoder = NULL;
    double best = 1e9;
    size_t heap = 0, resident = 0;
    uint64_t calls = 0;
    uint32_t paths = 0;
    recorded_blocks_load_whole(argv[1], MOST_BLOCKS, &all);
    if (all.count == 0 || sj_block_decoder_new(&decoder) != SJ_OK) {
        fail("there are no blocks, or no memory");
    }
    for (int round = 0; round <= rounds;
         round++) { /* in the first round, the decoder also allocates its buffers */
        sj_callgraph *graph;
        malloc_trim(0);
        const size_t heap_before = heap_bytes();
        const size_t resident_before = resident_bytes();
        if (sj_callgraph_new(&graph) != SJ_OK) {
            fail("out of memory");
        }
        const double begin = cpu_s();
        calls = apply_all(&all, decoder, graph);
        const double took = cpu_s() - begin;
        best = took < best ? took : best;
        paths = sj_callgraph_node_count(graph) - 1;
        heap = heap_bytes() - heap_before;
        resident = resident_bytes() - resident_before;
        sj_callgraph_free(graph);
    }
    printf("%.1f M calls, %u paths: %.0f bytes of heap and %.0f resident a path, %.1f ns a call\n",
           (double)calls / 1e6, paths, (double)heap / paths, (double)resident / paths,
           best * 1e9 / (double)calls);
    sj_block_decoder_free(decoder);
    return 0;
}
