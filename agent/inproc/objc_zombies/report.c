#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/trace.h"

#include <string.h>

enum { ANCESTORS_MAX = 64, VALUES_MAX = 256 };

static uint32_t append_text(char *target, uint32_t used, uint32_t capacity, const char *text)
{
    while (*text != '\0' && used + 1 < capacity) {
        target[used++] = *text++;
    }
    target[used] = '\0';
    return used;
}

/* Returns the class itself if it is in a module, else its nearest superclass in a module. Key-value
 * observing creates classes at run time. */
static const sj_gcc_class *module_class_of(const sj_gcc_class *class)
{
    for (uint32_t i = 0; class != NULL && i < ANCESTORS_MAX; i++, class = class->super) {
        bool is_known = false;
        (void)sj_objects_is_system((uint64_t)(uintptr_t) class, &is_known);
        if (is_known) {
            return class;
        }
    }
    return NULL;
}

static void write_lineage(char *target, const sj_gcc_class *class)
{
    uint32_t used = 0;
    for (uint32_t i = 0; class != NULL && i < ANCESTORS_MAX; i++, class = class->super) {
        const uint32_t bytes = (uint32_t)strnlen(class->name, SJ_ZOMBIE_CLASS_BYTES) + 1;
        if (used + bytes + 1 >= SJ_ZOMBIE_LINEAGE_BYTES) {
            break;
        }
        memcpy(target + used, class->name, bytes - 1);
        target[used + bytes - 1] = '\0';
        used += bytes;
    }
    target[used] = '\0';
}

/* Returns the size of a type encoding in bytes, or 0 if values of this type are not written. */
static uint32_t bytes_of_type(char type)
{
    static const char *const types[] = {"", "cCB", "sS", "", "iIf", "", "", "", "lLqQd@#:^*"};
    for (uint32_t bytes = 1; bytes < sizeof(types) / sizeof(types[0]); bytes++) {
        if (type != '\0' && strchr(types[bytes], type) != NULL) {
            return bytes;
        }
    }
    return 0;
}

/* Appends " 0x" and a value in hexadecimal. */
static uint32_t append_value(char *target, uint32_t used, const uint8_t *at, uint32_t bytes)
{
    char text[2 + 2 * sizeof(uint64_t) + 2] = " 0x";
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    for (uint32_t i = 0; i < 2 * bytes; i++) {
        text[3 + i] = "0123456789abcdef"[value >> (4 * (2 * bytes - 1 - i)) & 15];
    }
    text[3 + 2 * bytes] = '\0';
    return append_text(target, used, SJ_ZOMBIE_VALUES_BYTES, text);
}

/* Appends one line "type name 0xvalue" per instance variable that the class itself declares. */
static uint32_t write_values_of(char *target, uint32_t used, const uint8_t *object,
                                const sj_gcc_class *class)
{
    const int32_t count = class->ivars != NULL ? class->ivars->count : 0;
    for (int32_t i = 0; i < count && i < VALUES_MAX; i++) {
        const sj_gcc_ivar *ivar = &class->ivars->ivars[i];
        const uint32_t bytes = bytes_of_type(ivar->type != NULL ? *ivar->type : '\0');
        if (ivar->name == NULL || ivar->offset < 0 ||
            ivar->offset + (long)bytes > class->instance_bytes || strcmp(ivar->name, "isa") == 0) {
            continue;
        }
        used = append_text(target, used, SJ_ZOMBIE_VALUES_BYTES, ivar->type);
        used = append_text(target, used, SJ_ZOMBIE_VALUES_BYTES, " ");
        used = append_text(target, used, SJ_ZOMBIE_VALUES_BYTES, ivar->name);
        used = bytes != 0 ? append_value(target, used, object + ivar->offset, bytes) : used;
        used = append_text(target, used, SJ_ZOMBIE_VALUES_BYTES, "\n");
    }
    return used;
}

static void write_values(char *target, const void *object, const sj_gcc_class *class)
{
    uint32_t used = 0;
    target[0] = '\0';
    for (uint32_t i = 0; class != NULL && i < ANCESTORS_MAX; i++, class = class->super) {
        used = write_values_of(target, used, object, class);
    }
}

static void write_object(sj_zombie_object *target, const sj_kept *kept, const void *object,
                         const void *selector)
{
    const sj_gcc_class *module_class = module_class_of(kept->class);
    const sj_gcc_class *named = module_class != NULL ? module_class : kept->class;
    (void)append_text(target->class_name, 0, SJ_ZOMBIE_CLASS_BYTES, named->name);
    (void)append_text(target->real_class, 0, SJ_ZOMBIE_CLASS_BYTES,
                      named != kept->class ? kept->class->name : "");
    (void)append_text(target->selector, 0, SJ_ZOMBIE_CLASS_BYTES,
                      sj_objc_gcc.selector_name(selector));
    write_lineage(target->lineage, named->super);
    write_values(target->values, object, kept->class);
    sj_history_write(target, object);
}

sj_zombie_on_use sj_report_message(sj_kept *kept, const void *selector, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const void *object = kept != NULL ? atomic_load(&kept->object) : NULL;
    if (region == NULL || object == NULL) {
        return SJ_ZOMBIE_CONTINUE;
    }
    const sj_zombie_on_use next = (sj_zombie_on_use)region->settings.objects.on_use;
    if (atomic_exchange(&kept->is_reported, 1) != 0) {
        return next;
    }
    sj_zombie_report *report = sj_report_begin(site, SJ_ZOMBIE_MESSAGE);
    if (report == NULL) {
        return next;
    }
    sj_zombie_trace use = {0};
    sj_trace_here(&use);
    report->kind = SJ_ZOMBIE_MESSAGE;
    report->is_write = 0;
    report->size = kept->bytes;
    report->address = (uint64_t)(uintptr_t)object;
    report->block = report->address;
    report->allocation.ticks = 0;
    memcpy(&report->release, &kept->release,
           kept->release.stack_bytes != 0 ? sizeof(kept->release)
                                          : offsetof(sj_zombie_trace, registers));
    memcpy(report->release_stack, kept + 1, kept->release.stack_bytes);
    write_object(&report->object, kept, object, selector);
    sj_report_finish(report, &use);
    return next;
}
