#include "agent/inproc/jvm/class_marks.h"

#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>

enum { SLOTS = 1 << 17, FULL = SLOTS / 4 * 3 };

typedef struct class_mark {
    _Atomic uint64_t key; /* 0: the slot is free */
    _Atomic uint32_t mark;
    uint32_t reserved;
} class_mark;

static class_mark *marks; /* [SLOTS]; open addressing, nothing is taken out */
static _Atomic uint32_t used;

bool sj_class_marks_make(void)
{
    if (marks == NULL) {
        marks = sj_sys_allocate(SLOTS * sizeof(*marks));
    }
    return marks != NULL;
}

void sj_class_marks_drop(void)
{
    if (marks != NULL) {
        (void)sj_sys_unmap(marks, SLOTS * sizeof(*marks));
    }
    marks = NULL;
    atomic_store(&used, 0);
}

uint64_t sj_class_marks_key(const char *name, size_t bytes, uint64_t loader)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ loader * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < bytes; i++) {
        key = (key ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    }
    key ^= key >> 29;
    return key != 0 ? key : 1;
}

/* The slot of a key, or with `takes` a free one that is the key's from now on. */
static class_mark *find(uint64_t key, bool takes)
{
    for (uint64_t i = key; marks != NULL; i++) {
        class_mark *slot = &marks[i % SLOTS];
        uint64_t held = atomic_load(&slot->key);
        if (held == 0 && (!takes || atomic_load(&used) >= FULL)) {
            return NULL;
        }
        if (held == 0 && atomic_compare_exchange_strong(&slot->key, &held, key)) {
            atomic_fetch_add(&used, 1);
            return slot;
        }
        if (held == key) {
            return slot;
        }
    }
    return NULL;
}

bool sj_class_marks_set(uint64_t key, uint32_t mark)
{
    class_mark *slot = find(key, true);
    if (slot != NULL) {
        atomic_store(&slot->mark, mark);
    }
    return slot != NULL;
}

uint32_t sj_class_marks_get(uint64_t key)
{
    class_mark *slot = find(key, false);
    return slot != NULL ? atomic_load(&slot->mark) : 0;
}
