#include "agent/inproc/jvm/class_marks.h"

#include "agent/inproc/jvm/key_table.h"

static sj_key_table marks;

bool sj_class_marks_init(void)
{
    return sj_key_table_init(&marks);
}

void sj_class_marks_deinit(void)
{
    sj_key_table_deinit(&marks);
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

bool sj_class_marks_set(uint64_t key, uint32_t mark)
{
    return sj_key_table_set(&marks, key, mark);
}

uint32_t sj_class_marks_get(uint64_t key)
{
    return marks.slots != NULL ? sj_key_table_get(&marks, key) : 0;
}
