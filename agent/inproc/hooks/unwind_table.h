/* Unwind information of a stub area: one description for all of its code, whose expressions search
 * the area's map (agent/abi/stub_map.h). To unwinders a stub is a signal frame that has interrupted
 * the instruction which it stands for, so that they go on there by the program's own tables. */
#ifndef SJ_AGENT_INPROC_HOOKS_UNWIND_TABLE_H
#define SJ_AGENT_INPROC_HOOKS_UNWIND_TABLE_H

#include <stdint.h>

enum {
    SJ_UNWIND_TABLE_BYTES = 400,
    SJ_UNWIND_INDEX_BYTES = 24, /* of them, the index */
    SJ_UNWIND_FRAMES_BYTES = SJ_UNWIND_TABLE_BYTES - SJ_UNWIND_INDEX_BYTES
};

/* sj_unwind_table_write writes the tables of the area at `area`, whose head is complete, to `at`
 * in its first 2 GiB, SJ_UNWIND_TABLE_BYTES at most, and returns how many: first the index
 * (.eh_frame_hdr), then .eh_frame. They hold addresses of this process. 0: not on this machine. */
uint32_t sj_unwind_table_write(const void *area, uint8_t *at);

#endif
