/* Reads /proc/self/maps inside the program, without libc and without allocation. Uses one
 * descriptor while it is open. */
#ifndef SJ_AGENT_INPROC_RECORDER_MAPS_H
#define SJ_AGENT_INPROC_RECORDER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes of read buffers. The small one is for code that runs on small stacks. The other holds as
 * much as one read returns at most; it is for code that runs when modules are hooked. */
enum { SJ_MAPS_LITTLE_BYTES = 512, SJ_MAPS_BYTES = 4096 };

/* One line: addresses, protection (PROT_READ | ...), and whether it is the main thread's stack. */
typedef struct sj_mapping {
    uint64_t low;
    uint64_t high;
    int protection;
    bool is_stack;
} sj_mapping;

typedef struct sj_maps {
    int descriptor;
    uint32_t used;
    uint32_t filled;
    uint32_t capacity;
    char *buffer; /* borrowed */
} sj_maps;

/* Starts reading through `buffer`, which sj_maps_close returns to the caller. Returns false if the
 * kernel refuses. Async-signal-safe. */
bool sj_maps_open(sj_maps *maps, char *buffer, uint32_t buffer_bytes);

/* Reads the next mapping in address order. Returns false at the end. Async-signal-safe. */
bool sj_maps_next(sj_maps *maps, sj_mapping *mapping);

/* Ends reading after a successful sj_maps_open. Async-signal-safe. */
void sj_maps_close(sj_maps *maps);

#endif
