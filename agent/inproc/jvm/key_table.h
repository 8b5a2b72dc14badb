/* Lock-free, insert-only hash map from 64-bit keys to numbers. Thread-safe. */
#ifndef SJ_AGENT_INPROC_JVM_KEY_TABLE_H
#define SJ_AGENT_INPROC_JVM_KEY_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_KEY_TABLE_BITS = 17 };

typedef struct sj_key_slot {
    _Atomic uint64_t key; /* 0 if the slot is free. */
    _Atomic uint32_t number;
    uint32_t reserved;
} sj_key_slot;

/* A zeroed table is empty. */
typedef struct sj_key_table {
    sj_key_slot *slots; /* Open addressing. */
    _Atomic uint32_t used;
} sj_key_table;

/* Allocates the table. A second call does nothing. Returns false if out of memory. Not thread-safe.
 */
bool sj_key_table_init(sj_key_table *table);

/* Frees the table. No other thread may use it now. */
void sj_key_table_deinit(sj_key_table *table);

/* Sets the number of a key. The key is not 0. Returns false if the table is full. */
bool sj_key_table_set(sj_key_table *table, uint64_t key, uint32_t number);

/* Returns the index of the slot at which the search for a key begins. */
static inline uint64_t sj_key_table_place(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SJ_KEY_TABLE_BITS);
}

/* Returns the number of a key, or 0 if none was set. The table must be allocated. */
static inline uint32_t sj_key_table_get(const sj_key_table *table, uint64_t key)
{
    enum { LAST = (1 << SJ_KEY_TABLE_BITS) - 1 };
    for (uint64_t place = sj_key_table_place(key);; place++) {
        const sj_key_slot *slot = &table->slots[place & LAST];
        const uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == key) {
            return atomic_load_explicit(&slot->number, memory_order_relaxed);
        }
        if (found == 0) {
            return 0;
        }
    }
}

#endif
