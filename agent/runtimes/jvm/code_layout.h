/* Positions of the instructions of a method once the probes are added. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H
#define SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H

#include "agent/runtimes/jvm/class_file.h"

enum {
    SJ_PROBE_BYTES = 6,      /* push, invokestatic. */
    SJ_LINE_PROBE_BYTES = 9, /* push, push, invokestatic. */
    SJ_CODE_NOWHERE = UINT16_MAX,
    SJ_CODE_MAX_BYTES = 65535
};

/* Sizes of the added code, in bytes. */
typedef struct sj_code_growth {
    uint32_t entry;   /* At the start. */
    uint32_t exit;    /* Before each return. */
    uint32_t handler; /* At the end. */
    uint16_t label;   /* Position within `entry` that a jump leads to. 0: none. */
    uint32_t line;    /* Before each instruction that begins a line. */
    /* [code.size] 1: a line begins there. NULL: lines are not wanted. Borrowed. */
    const uint8_t *line_starts;
} sj_code_growth;

typedef struct sj_code_layout {
    sj_slice code;
    sj_code_growth growth;
    /* [code.size + 1] new offset of each instruction. SJ_CODE_NOWHERE: not the start of an
     * instruction. The last: the end of the old code. */
    uint16_t *place;
    uint16_t covered_from; /* First new offset that a handler may cover. */
    bool has_handler;
} sj_code_layout;

/* Places the instructions of `code` with `growth` added. The caller releases the layout with
 * sj_code_layout_deinit, also after an error. Returns SJ_ECORRUPT, SJ_ELIMIT if the code becomes
 * too large, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_code_layout_make(const sj_class_file *file,
                                            const sj_class_method *method, sj_slice code,
                                            const sj_code_growth *growth, sj_code_layout *layout);
void sj_code_layout_deinit(sj_code_layout *layout);

/* Returns the bytes that are added before the instruction at `at` because it begins a line. */
static inline uint32_t sj_code_layout_line(const sj_code_layout *layout, uint32_t at)
{
    const uint8_t *starts = layout->growth.line_starts;
    return starts != NULL && at < layout->code.size && starts[at] != 0 ? layout->growth.line : 0;
}

/* Returns the new offset of the instruction at `at`, or SJ_CODE_NOWHERE if none begins there. */
static inline uint16_t sj_code_layout_at(const sj_code_layout *layout, uint64_t at)
{
    return at <= layout->code.size ? layout->place[at] : SJ_CODE_NOWHERE;
}

#endif
