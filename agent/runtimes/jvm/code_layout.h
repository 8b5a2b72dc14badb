/* Where the instructions of a method stand once the probes are in. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H
#define SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H

#include "agent/runtimes/jvm/class_file.h"

enum {
    SJ_PROBE_BYTES = 6,      /* push, invokestatic */
    SJ_LINE_PROBE_BYTES = 9, /* push, push, invokestatic */
    SJ_CODE_NOWHERE = UINT16_MAX,
    SJ_CODE_MAX_BYTES = 65535
};

/* Bytes that are put in. */
typedef struct sj_code_growth {
    uint32_t entry;             /* at the start */
    uint32_t exit;              /* in front of each return */
    uint32_t handler;           /* at the end */
    uint16_t label;             /* place within `entry` that a jump leads to; 0: none */
    uint32_t line;              /* in front of each instruction that begins a line */
    const uint8_t *line_starts; /* [code.size] 1: one does; NULL: no lines wanted. Borrowed */
} sj_code_growth;

typedef struct sj_code_layout {
    sj_slice code;
    sj_code_growth growth;
    uint16_t *place; /* [code.size + 1] new offset of each instruction; SJ_CODE_NOWHERE: inside one;
                        the last: end of the old code */
    uint16_t covered_from; /* new offset from which a handler may cover the code */
    bool has_handler;
} sj_code_layout;

/* sj_code_layout_make places the instructions of `code`, which grows by `growth`. Release with
 * sj_code_layout_deinit, also after a failure. SJ_ECORRUPT, SJ_ELIMIT too large, SJ_ENOMEM. Any
 * thread. */
SJ_MUST_CHECK sj_status sj_code_layout_make(const sj_class_file *file,
                                            const sj_class_method *method, sj_slice code,
                                            const sj_code_growth *growth, sj_code_layout *layout);
void sj_code_layout_deinit(sj_code_layout *layout);

/* sj_code_layout_line gives the bytes that are put in front of the instruction at `at` because it
 * begins a line. */
static inline uint32_t sj_code_layout_line(const sj_code_layout *layout, uint32_t at)
{
    const uint8_t *starts = layout->growth.line_starts;
    return starts != NULL && at < layout->code.size && starts[at] != 0 ? layout->growth.line : 0;
}

/* sj_code_layout_at gives the new offset of the instruction at `at`; SJ_CODE_NOWHERE when none
 * begins there. */
static inline uint16_t sj_code_layout_at(const sj_code_layout *layout, uint64_t at)
{
    return at <= layout->code.size ? layout->place[at] : SJ_CODE_NOWHERE;
}

#endif
