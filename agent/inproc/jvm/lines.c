/* Design notes
 *
 * A line runs often and is new once: the table is asked without a lock, and nothing is taken out of
 * it. When it is full, what is missing is not known, and the recorder does not hear that the rest
 * did not run. */
#include "agent/inproc/jvm/lines.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

enum { SLOTS = 1 << 18, FULL = SLOTS / 4 * 3, LINE_WORDS = 3, PLACE_BITS = 16 };
enum { AT_ONCE = SJ_LINK_LINES_WORDS / LINE_WORDS };

static _Atomic uint64_t *_Atomic table; /* [SLOTS] function << 16 | place, and one more; 0: free */
static _Atomic uint32_t used;
static uint32_t words[AT_ONCE * LINE_WORDS]; /* of the thread that reports them, at the end */

/* NULL: no memory. */
static _Atomic uint64_t *get_table(void)
{
    _Atomic uint64_t *there = atomic_load(&table);
    if (there != NULL) {
        return there;
    }
    _Atomic uint64_t *made = sj_sys_allocate(SLOTS * sizeof(*made));
    if (made == NULL || atomic_compare_exchange_strong(&table, &there, made)) {
        return made;
    }
    (void)sj_sys_unmap((void *)(uintptr_t)made, SLOTS * sizeof(*made));
    return there;
}

void JNICALL sj_jvm_line(JNIEnv *env, jclass class, jint place, jint function)
{
    const uint64_t key = ((uint64_t)(uint32_t)function << PLACE_BITS | (uint16_t)place) + 1;
    _Atomic uint64_t *slots = sj_recorder_is_armed() ? get_table() : NULL;
    (void)env;
    (void)class;
    for (uint64_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 40; slots != NULL; i++) {
        _Atomic uint64_t *slot = &slots[i % SLOTS];
        uint64_t held = atomic_load_explicit(slot, memory_order_relaxed);
        if (held == 0 && atomic_load(&used) >= FULL) {
            return;
        }
        if (held == 0 && atomic_compare_exchange_strong(slot, &held, key)) {
            atomic_fetch_add(&used, 1);
            return;
        }
        if (held == key) {
            return;
        }
    }
}

void sj_jvm_report_lines(void)
{
    _Atomic uint64_t *slots = atomic_load(&table);
    uint32_t count = 0;
    if (slots == NULL || sj_jvm.options.lines == NULL || !sj_recorder_is_armed() ||
        !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint64_t key = atomic_load(&slots[i]);
        if (key != 0) {
            words[count++] = (uint32_t)((key - 1) >> PLACE_BITS);
            words[count++] = 1;
            words[count++] = (uint32_t)((key - 1) & UINT16_MAX);
        }
        if (count == AT_ONCE * LINE_WORDS) {
            sj_jvm.options.lines(words, count, false);
            count = 0;
        }
    }
    sj_jvm.options.lines(words, count, atomic_load(&used) < FULL);
}
