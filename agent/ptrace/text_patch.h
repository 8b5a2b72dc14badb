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
    /* number of bytes, at least `bytes`, in which no thread may be; in its first byte, only for
     * removals */
    uint8_t window;
    /* the patch removes a jump of the agent, `expected`; a thread at the jump is moved to the
     * jump's target */
    bool is_removal;
    /* A thread inside the window is moved to the window's start, because the instructions before
     * the thread's position may run again. */
    bool repeats;
    bool refused;    /* result: the patch was left out */
    bool is_foreign; /* result: the text differs from `expected`, so the patch was left out */
    uint8_t expected[SJ_TEXT_PATCH_BYTES];
    uint8_t wanted[SJ_TEXT_PATCH_BYTES];
} sj_text_patch;

typedef struct sj_text_patch_report {
    uint32_t changed; /* patches that are now in place, including those that were already there */
    uint32_t refused;
    uint32_t foreign; /* number of those in `refused` whose text differs from `expected` */
    /* number of times that a thread had to run to leave a window, because new program counters did
     * not suffice */
    uint32_t moved;
} sj_text_patch_report;

/* A change of the text: the patches, and a copy of their pages. */
typedef struct sj_text_change {
    sj_text_patch *patches; /* sorted by address */
    size_t count;
    uint32_t *places; /* [count] offset of each patch in `pages` */
    uint8_t *pages;
    size_t page_count;
} sj_text_change;

/* Prepares a change while the threads still run: sorts the patches, allocates memory, and reads the
 * pages so that they are in memory. Takes ownership of `patches` (from malloc), also on failure.
 * Release with sj_text_change_deinit. Returns SJ_ENOMEM if out of memory. Returns SJ_EIO if the
 * text cannot be read. */
SJ_MUST_CHECK sj_status sj_text_change_init(const sj_tracee *target, sj_text_patch *patches,
                                            size_t count, sj_text_change *change);
void sj_text_change_deinit(sj_text_change *change);

/* Brings every thread out of the windows of the patches, and every context that a signal handler
 * has interrupted. If this fails for a window, sets `refused` in all patches of its group. All
 * threads must be stopped, and are stopped again afterwards. Meanwhile single threads may run,
 * create threads and load modules. Returns SJ_EAGAIN if in each of 16 passes over all threads, a
 * thread had to run; new threads start too fast. Returns SJ_ENOMEM, SJ_ECLOSED, or errors of
 * sj_tracee_stop_all. */
SJ_MUST_CHECK sj_status sj_text_change_clear(sj_tracee *target, const sj_signal_returns *returns,
                                             sj_text_change *change, sj_text_patch_report *report);

/* Writes the patches of every group that is not refused and whose text is as expected. Call
 * sj_text_change_clear first. Either all patches have `is_removal`, or none has it. If the tracer
 * is killed meanwhile, the text stays runnable. Adds to the counts that sj_text_change_clear left
 * in `report`. Returns SJ_EIO if memory cannot be read or written. */
SJ_MUST_CHECK sj_status sj_text_change_apply(sj_tracee *target, sj_text_change *change,
                                             sj_text_patch_report *report);

#endif
