/* Record slots of a chunk as probes fill them: full-size records, and up to four short ones in a
 * slot. */
#ifndef SJ_TESTS_AGENT_DRAIN_RECORD_PLACES_H
#define SJ_TESTS_AGENT_DRAIN_RECORD_PLACES_H

#include "agent/abi/record.h"

#include <stddef.h>
#include <string.h>

typedef struct record_places {
    sj_record *list; /* allocated by the test */
    size_t count;    /* slots in use, including a partly filled last slot */
    uint32_t part;   /* short records in the last slot; 0: the slot is complete */
} record_places;

static inline void put_word(record_places *to, uint32_t word)
{
    if (to->part == 0) {
        to->list[to->count++] = (sj_record){{0}};
    }
    memcpy(to->list[to->count - 1].bytes + (size_t)to->part * SJ_SHORT_BYTES, &word, sizeof(word));
    to->part = (to->part + 1) % SJ_SHORTS;
}

static inline void put_whole(record_places *to, sj_record record)
{
    while (to->part != 0) {
        put_word(to, SJ_SHORT_FILLER);
    }
    to->list[to->count++] = record;
}

#endif
