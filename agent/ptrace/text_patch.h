/* Changes to the text of a process whose threads are all stopped. */
#ifndef SJ_AGENT_PTRACE_TEXT_PATCH_H
#define SJ_AGENT_PTRACE_TEXT_PATCH_H

#include "agent/ptrace/arch.h"
#include "agent/ptrace/tracee.h"

enum { SJ_TEXT_PATCH_BYTES = 16 };

typedef struct sj_text_patch {
    uint64_t address;
    uint32_t group; /* the patches of one group are made together or not at all */
    uint8_t bytes;  /* number of bytes that are written */
    uint8_t window; /* number of bytes that no thread may stand in; at least `bytes` */
    /* `expected` is one of our jumps; a thread that stands on it is moved to its target */
    bool is_removal;
    /* A thread inside the window is moved to its start: the instructions before may be repeated. */
    bool repeats;
    bool refused;    /* result: the patch was left out */
    bool is_foreign; /* result: the text has other bytes than expected */
    uint8_t expected[SJ_TEXT_PATCH_BYTES];
    uint8_t wanted[SJ_TEXT_PATCH_BYTES];
} sj_text_patch;

typedef struct sj_text_patch_report {
    uint32_t changed; /* patches that are now in place, including those that were already there */
    uint32_t refused;
    uint32_t foreign; /* the part of `refused` whose text has other bytes than expected */
    /* threads that new program counters alone could not bring out of a window */
    uint32_t moved;
} sj_text_patch_report;

/* A change of the text: the patches, and a copy of their pages. */
typedef struct sj_text_change {
    sj_text_patch *patches; /* sorted by address */
    size_t count;
    uint32_t *places; /* [count] index of each patch in the copy */
    uint8_t *pages;
    size_t page_count;
} sj_text_change;

/* Prepares a change while the threads still run: sorts the patches, allocates memory, and reads the
 * pages so that they are in memory. Takes ownership of `patches` (from malloc), also on failure.
 * Release with sj_text_change_deinit. SJ_ENOMEM. SJ_EIO: the text cannot be read. */
SJ_MUST_CHECK sj_status sj_text_change_init(const sj_tracee *target, sj_text_patch *patches,
                                            size_t count, sj_text_change *change);
void sj_text_change_deinit(sj_text_change *change);

/* Brings every thread, and every context that a signal handler has interrupted, out of the bytes
 * that will be written. Groups for which this fails become `refused`. All threads must be stopped,
 * and are stopped afterwards. Meanwhile single threads may run, create threads and load modules.
 * Contexts that return to an unknown restorer are found by their content only. SJ_EAGAIN: threads
 * are created and end too fast. SJ_ENOMEM, SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_text_change_clear(sj_tracee *target, const sj_signal_returns *returns,
                                             sj_text_change *change, sj_text_patch_report *report);

/* Writes the patches of every group that is not refused and whose text is as expected. Call
 * sj_text_change_clear first. Either all patches are made or all are removals. If the tracer is
 * killed meanwhile, the text stays runnable. Adds to the counts that sj_text_change_clear left in
 * `report`. SJ_EIO: memory cannot be read or written. */
SJ_MUST_CHECK sj_status sj_text_change_apply(sj_tracee *target, sj_text_change *change,
                                             sj_text_patch_report *report);

#endif
