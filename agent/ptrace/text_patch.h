/* Changes of the text of a process whose threads are all stopped. */
#ifndef SJ_AGENT_PTRACE_TEXT_PATCH_H
#define SJ_AGENT_PTRACE_TEXT_PATCH_H

#include "agent/ptrace/arch.h"
#include "agent/ptrace/tracee.h"

enum { SJ_TEXT_PATCH_BYTES = 16 };

typedef struct sj_text_patch {
    uint64_t address;
    uint32_t group;  /* patches of one group are made all or none */
    uint8_t bytes;   /* that are written */
    uint8_t window;  /* bytes that no thread may stand in, >= `bytes` */
    bool is_removal; /* `expected` is a jump of ours: who stands on it has taken it */
    bool refused;    /* result: left out */
    bool is_foreign; /* result: the text holds other bytes than expected */
    uint8_t expected[SJ_TEXT_PATCH_BYTES];
    uint8_t wanted[SJ_TEXT_PATCH_BYTES];
} sj_text_patch;

typedef struct sj_text_patch_report {
    uint32_t changed; /* patches written, those that were there already included */
    uint32_t refused;
    uint32_t foreign; /* of these: left out because the text holds other bytes than expected */
    uint32_t moved;   /* threads and interrupted contexts that stood in a window */
} sj_text_patch_report;

/* A change of the text: patches, and a copy of the pages that they lie in. */
typedef struct sj_text_change {
    sj_text_patch *patches; /* sorted by address */
    size_t count;
    uint32_t *places; /* [count] of each patch in the copy */
    uint8_t *pages;
    size_t page_count;
} sj_text_change;

/* sj_text_change_init takes over `patches` (from malloc, also on failure) and does what can be done
 * while the threads run: sorts them, makes room, and reads the pages once, so that they are in
 * memory. Release with sj_text_change_deinit. SJ_ENOMEM, SJ_EIO the text cannot be read. */
SJ_MUST_CHECK sj_status sj_text_change_init(const sj_tracee *target, sj_text_patch *patches,
                                            size_t count, sj_text_change *change);
void sj_text_change_deinit(sj_text_change *change);

/* sj_text_change_clear brings every thread, and every context that a signal handler has
 * interrupted, out of the bytes that are to be written; groups for which that fails are `refused`.
 * All threads are stopped before and after; in between single ones may run, make threads and load
 * modules. Of `returns` that are not known, contexts are not looked at. SJ_EAGAIN threads come and
 * go too fast, SJ_ENOMEM, SJ_ECLOSED.
 */
SJ_MUST_CHECK sj_status sj_text_change_clear(sj_tracee *target, const sj_signal_returns *returns,
                                             sj_text_change *change, sj_text_patch_report *report);

/* sj_text_change_apply then writes the patches of every group that is not refused and of which all
 * bytes are as expected. All patches are made or all are removals. A tracer that is killed in
 * between leaves text that runs. `report` goes on where sj_text_change_clear left it. SJ_EIO memory
 * cannot be read or written. */
SJ_MUST_CHECK sj_status sj_text_change_apply(sj_tracee *target, sj_text_change *change,
                                             sj_text_patch_report *report);

#endif
