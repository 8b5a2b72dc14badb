/* Reads /proc/self/maps inside the program: no libc, no allocation, one descriptor while it is
 * open. */
#ifndef SJ_AGENT_INPROC_RECORDER_MAPS_H
#define SJ_AGENT_INPROC_RECORDER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Room for a scan: little for what runs on small stacks; as much as one read gives at most, for
 * what runs when modules are hooked. */
enum { SJ_MAPS_LITTLE_BYTES = 512, SJ_MAPS_BYTES = 4096 };

/* One line: addresses, protection (PROT_READ | ...) and whether it is the main thread's stack. */
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
    uint32_t room;
    char *buffer; /* borrowed */
} sj_maps;

/* sj_maps_open starts reading by way of `buffer`, which is the caller's until sj_maps_close; false
 * when the kernel refuses. Async-signal-safe. */
bool sj_maps_open(sj_maps *maps, char *buffer, uint32_t buffer_bytes);

/* sj_maps_next takes the next mapping in address order; false at the end. Async-signal-safe. */
bool sj_maps_next(sj_maps *maps, sj_mapping *mapping);

/* sj_maps_close ends reading; pairs with a successful sj_maps_open. Async-signal-safe. */
void sj_maps_close(sj_maps *maps);

#endif
