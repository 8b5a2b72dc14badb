/* Unwind information of a stub area: one description for all of its code. Its expressions search
 * the area's map (agent/abi/stub_map.h). To unwinders a stub is a signal frame that has interrupted
 * the instruction for which the stub stands. So they continue there with the program's own
 * tables. */
#ifndef SJ_AGENT_INPROC_HOOKS_UNWIND_TABLE_H
#define SJ_AGENT_INPROC_HOOKS_UNWIND_TABLE_H

#include <stdint.h>

enum {
    SJ_UNWIND_TABLE_BYTES = 400,
    SJ_UNWIND_INDEX_BYTES = 24, /* size of the index, which comes first */
    SJ_UNWIND_FRAMES_BYTES = 600
};

/* Writes the tables of the area at `area`, whose head is complete, to `at`. `at` lies in the first
 * 2 GiB of the area. First comes the index (.eh_frame_hdr), then .eh_frame. They contain addresses
 * of this process. Returns their size in bytes, at most SJ_UNWIND_TABLE_BYTES, or 0 if unwinders of
 * this machine cannot use them. */
uint32_t sj_unwind_table_write(const void *area, uint8_t *at);

/* Writes only .eh_frame to `at`, for a debugger that finds it at `address`. Returns its size in
 * bytes, at most SJ_UNWIND_FRAMES_BYTES. */
uint32_t sj_unwind_frames_write(const void *area, uint8_t *at, uint64_t address);

#endif
