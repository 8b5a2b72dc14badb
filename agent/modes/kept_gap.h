/* Kept gap: the gaps of blocks that the writer of frames did not take, as one, until it takes that.
 * One thread at a time. */
#ifndef SJ_AGENT_MODES_KEPT_GAP_H
#define SJ_AGENT_MODES_KEPT_GAP_H

#include "agent/session/frame_writer.h"

/* Zeroed: nothing is kept. */
typedef struct sj_kept_gap {
    bool is_set;
    sj_gap gap;
    uint64_t thread; /* 0: of several; also below */
    uint32_t stream;
} sj_kept_gap;

/* sj_kept_gap_report reports what is kept, if anything is. SJ_ENOMEM, SJ_EIO and SJ_EFULL keep it.
 */
SJ_MUST_CHECK sj_status sj_kept_gap_report(sj_kept_gap *kept, sj_frame_writer *writer);

/* sj_kept_gap_report_block reports the gaps of a decoded block but those before the recording, or
 * keeps what `writer` does not take. */
void sj_kept_gap_report_block(sj_kept_gap *kept, sj_frame_writer *writer, uint64_t thread,
                              const sj_block *block);

#endif
