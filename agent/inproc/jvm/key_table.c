#include "agent/inproc/jvm/key_table.h"

#include "agent/inproc/recorder/sys.h"

enum { SLOTS = 1 << SJ_KEY_TABLE_BITS, FULL = SLOTS / 4 * 3 };

bool sj_key_table_init(sj_key_table *table)
{
    if (table->slots == NULL) {
        table->slots = sj_sys_allocate(SLOTS * sizeof(*table->slots));
    }
    return table->slots != NULL;
}

void sj_key_table_deinit(sj_key_table *table)
{
    if (table->slots != NULL) {
        (void)sj_sys_unmap(table->slots, SLOTS * sizeof(*table->slots));
    }
    table->slots = NULL;
    atomic_store(&table->used, 0);
}

/* Returns the slot of a key; claims a free slot if the key is new. Returns NULL if the table is
 * full. */
static sj_key_slot *claim_slot(sj_key_table *table, uint64_t key)
{
    for (uint64_t index = sj_key_table_place(key);; index++) {
        sj_key_slot *slot = &table->slots[index % SLOTS];
        uint64_t found = atomic_load(&slot->key);
        if (found == 0 && atomic_load(&table->used) >= FULL) {
            return NULL;
        }
        if (found == 0 && atomic_compare_exchange_strong(&slot->key, &found, key)) {
            atomic_fetch_add(&table->used, 1);
            return slot;
        }
        if (found == key) {
            return slot;
        }
    }
}

bool sj_key_table_set(sj_key_table *table, uint64_t key, uint32_t number)
{
    sj_key_slot *slot = table->slots != NULL ? claim_slot(table, key) : NULL;
    if (slot != NULL) {
        atomic_store(&slot->number, number);
    }
    return slot != NULL;
}
