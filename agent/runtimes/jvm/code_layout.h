/* Computes the offsets of a method's instructions after probes are added. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H
#define SJ_AGENT_RUNTIMES_JVM_CODE_LAYOUT_H

#include "agent/runtimes/jvm/class_file.h"

enum {
    SJ_PROBE_BYTES = 6,      /* One push and invokestatic. */
    SJ_LINE_PROBE_BYTES = 9, /* Two pushes and invokestatic. */
    SJ_CODE_NOWHERE = UINT16_MAX,
    SJ_CODE_MAX_BYTES = 65535
};

/* Sizes of the added code, in bytes. */
typedef struct sj_code_growth {
    uint32_t entry;   /* At the start of the code. */
    uint32_t exit;    /* Before each return. */
    uint32_t handler; /* At the end of the code. */
    uint16_t label;   /* Offset in `entry` that is the target of a jump; 0 if it has none. */
    uint32_t line;    /* Before each instruction that begins a line. */
    /* [code.size] 1 at offsets where a line begins. NULL if lines are not recorded. Borrowed. */
    const uint8_t *line_starts;
} sj_code_growth;

typedef struct sj_code_layout {
    sj_slice code;
    sj_code_growth growth;
    /* [code.size + 1] New offset of the instruction at each old offset, or SJ_CODE_NOWHERE if no
     * instruction begins there. The last element is the new offset of the end. */
    uint16_t *new_offset;
    uint16_t covered_from; /* First new offset that the added exception handler may cover. */
    bool has_handler;      /* True if a handler of all exceptions is added. */
} sj_code_layout;

/* Computes the layout of `code` with `growth` added. The caller calls sj_code_layout_deinit, even
 * after an error. Returns SJ_ECORRUPT, SJ_ENOMEM, or SJ_ELIMIT if the code becomes too large.
 * Thread-safe. */
SJ_MUST_CHECK sj_status sj_code_layout_make(const sj_class_file *file,
                                            const sj_class_method *method, sj_slice code,
                                            const sj_code_growth *growth, sj_code_layout *layout);
void sj_code_layout_deinit(sj_code_layout *layout);

/* Returns the size of the line probe before the instruction at old offset `at`; 0 if it has none.
 */
static inline uint32_t sj_code_layout_line(const sj_code_layout *layout, uint32_t at)
{
    const uint8_t *starts = layout->growth.line_starts;
    return starts != NULL && at < layout->code.size && starts[at] != 0 ? layout->growth.line : 0;
}

/* Returns the new offset of the instruction at old offset `at`, or SJ_CODE_NOWHERE if none begins
 * there. */
static inline uint16_t sj_code_layout_at(const sj_code_layout *layout, uint64_t at)
{
    return at <= layout->code.size ? layout->new_offset[at] : SJ_CODE_NOWHERE;
}

#endif
