/* Kept gap: joins the gaps of blocks that the frame writer did not accept, until it accepts them.
 * Not thread-safe. */
#ifndef SJ_AGENT_MODES_KEPT_GAP_H
#define SJ_AGENT_MODES_KEPT_GAP_H

#include "agent/session/frame_writer.h"

/* All zero: empty. */
typedef struct sj_kept_gap {
    bool is_set;
    sj_gap gap;
    uint64_t thread; /* 0: several threads or streams */
    uint32_t stream;
} sj_kept_gap;

/* Reports the kept gap, if there is one. On SJ_ENOMEM, SJ_EIO and SJ_EFULL it stays kept. */
SJ_MUST_CHECK sj_status sj_kept_gap_report(sj_kept_gap *kept, sj_frame_writer *writer);

/* Reports the gaps of a decoded block, except those before the recording; keeps what `writer` does
 * not accept. */
void sj_kept_gap_report_block(sj_kept_gap *kept, sj_frame_writer *writer, uint64_t thread,
                              const sj_block *block);

#endif
