/* Design notes
 *
 * A line runs often, but is added only once. So the hash table needs no lock, and elements are
 * never removed. If the table is full, some lines that ran are missing. Then the report does not
 * say that all other lines did not run. */
#include "agent/inproc/jvm/lines.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

enum { SLOTS = 1 << 18, FULL = SLOTS / 4 * 3, LINE_WORDS = 3, PLACE_BITS = 16 };
enum { LINES_PER_REPORT = SJ_LINK_LINES_WORDS / LINE_WORDS };

/* Hash table of SLOTS elements: 1 + (function << 16 | place), or 0 if free. */
static _Atomic uint64_t *_Atomic table;
static _Atomic uint32_t used;
/* Only the one thread that reports lines when the JVM ends uses this. */
static uint32_t words[LINES_PER_REPORT * LINE_WORDS];

/* Returns the table, which the first call allocates. Returns NULL if out of memory. */
static _Atomic uint64_t *get_table(void)
{
    _Atomic uint64_t *known = atomic_load(&table);
    if (known != NULL) {
        return known;
    }
    _Atomic uint64_t *new_table = sj_sys_allocate(SLOTS * sizeof(*new_table));
    if (new_table == NULL || atomic_compare_exchange_strong(&table, &known, new_table)) {
        return new_table;
    }
    (void)sj_sys_unmap((void *)(uintptr_t)new_table, SLOTS * sizeof(*new_table));
    return known;
}

void JNICALL sj_jvm_line(JNIEnv *env, jclass class, jint place, jint function)
{
    const uint64_t key = ((uint64_t)(uint32_t)function << PLACE_BITS | (uint16_t)place) + 1;
    _Atomic uint64_t *slots = sj_recorder_is_armed() ? get_table() : NULL;
    (void)env;
    (void)class;
    for (uint64_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 40; slots != NULL; i++) {
        _Atomic uint64_t *slot = &slots[i % SLOTS];
        uint64_t found = atomic_load_explicit(slot, memory_order_relaxed);
        if (found == 0 && atomic_load(&used) >= FULL) {
            return;
        }
        if (found == 0 && atomic_compare_exchange_strong(slot, &found, key)) {
            atomic_fetch_add(&used, 1);
            return;
        }
        if (found == key) {
            return;
        }
    }
}

void sj_jvm_report_lines(void)
{
    _Atomic uint64_t *slots = atomic_load(&table);
    uint32_t count = 0;
    if (slots == NULL || !sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint64_t key = atomic_load(&slots[i]);
        if (key != 0) {
            words[count++] = (uint32_t)((key - 1) >> PLACE_BITS);
            words[count++] = 1;
            words[count++] = (uint32_t)((key - 1) & UINT16_MAX);
        }
        if (count == LINES_PER_REPORT * LINE_WORDS) {
            sj_conversation_report_lines(words, count, false);
            count = 0;
        }
    }
    sj_conversation_report_lines(words, count, atomic_load(&used) < FULL);
}
