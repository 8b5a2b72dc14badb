/* A number for each of many keys. Any thread, no lock; nothing is taken out. */
#ifndef SJ_AGENT_INPROC_JVM_KEY_TABLE_H
#define SJ_AGENT_INPROC_JVM_KEY_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_KEY_TABLE_BITS = 17 };

typedef struct sj_key_slot {
    _Atomic uint64_t key; /* 0: the slot is free */
    _Atomic uint32_t number;
    uint32_t reserved;
} sj_key_slot;

/* Zeroed is empty. */
typedef struct sj_key_table {
    sj_key_slot *slots; /* open addressing */
    _Atomic uint32_t used;
} sj_key_table;

/* sj_key_table_make makes room; again: nothing. False: there is no memory. One thread. */
bool sj_key_table_make(sj_key_table *table);

/* sj_key_table_drop frees it. Nobody uses it any more. */
void sj_key_table_drop(sj_key_table *table);

/* sj_key_table_set sets the number of a key, which is not 0; false: there is no room. */
bool sj_key_table_set(sj_key_table *table, uint64_t key, uint32_t number);

static inline uint64_t sj_key_table_place(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SJ_KEY_TABLE_BITS);
}

/* sj_key_table_get returns the number of a key; 0 when it was never set. The table was made. */
static inline uint32_t sj_key_table_get(const sj_key_table *table, uint64_t key)
{
    enum { LAST = (1 << SJ_KEY_TABLE_BITS) - 1 };
    for (uint64_t place = sj_key_table_place(key);; place++) {
        const sj_key_slot *slot = &table->slots[place & LAST];
        const uint64_t held = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (held == key) {
            return atomic_load_explicit(&slot->number, memory_order_relaxed);
        }
        if (held == 0) {
            return 0;
        }
    }
}

#endif
