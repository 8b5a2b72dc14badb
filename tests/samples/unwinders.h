/* backtrace() by the libgcc that is linked into a sample. libgcc finds modules with
 * _dl_find_object. With ITERATES_MODULES it uses dl_iterate_phdr, as on a C library that has only
 * that. */
#ifndef SJ_TESTS_SAMPLES_UNWINDERS_H
#define SJ_TESTS_SAMPLES_UNWINDERS_H

#include <unwind.h>

typedef struct frame_list {
    void **frames;
    int count;
    int most;
} frame_list;

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *into)
{
    frame_list *list = into;
    int is_before;
    if (list->count < list->most) {
        list->frames[list->count++] = (void *)_Unwind_GetIPInfo(context, &is_before);
        return _URC_NO_REASON;
    }
    return _URC_END_OF_STACK;
}

static int own_backtrace(void **frames, int most)
{
    frame_list list = {frames, 0, most};
    _Unwind_Backtrace(add_frame, &list);
    return list.count;
}

#define backtrace own_backtrace

#ifdef ITERATES_MODULES

#include <link.h>
#include <stddef.h>

/* glibc's struct dl_find_object. libgcc needs the addresses in it. */
typedef struct found_module {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    void *link_map;
    void *eh_frame;
    unsigned long long rest[7];
} found_module;

/* The argument of libgcc's own dl_iterate_phdr callback begins with the address, too. */
typedef struct module_question {
    unsigned long pc;
    found_module *result;
} module_question;

static int find_module(struct dl_phdr_info *info, size_t size, void *asked)
{
    const module_question *question = asked;
    int is_found = 0;
    (void)size;
    question->result->eh_frame = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const unsigned long low = info->dlpi_addr + segment->p_vaddr;
        is_found |= segment->p_type == PT_LOAD && question->pc - low < segment->p_memsz;
        if (segment->p_type == PT_GNU_EH_FRAME) {
            question->result->eh_frame = (void *)low;
        }
    }
    return is_found && question->result->eh_frame != NULL;
}

int find_object(void *pc, found_module *result) __asm__("_dl_find_object");

int find_object(void *pc, found_module *result)
{
    module_question question = {(unsigned long)pc, result};
    return dl_iterate_phdr(find_module, &question) == 1 ? 0 : -1;
}

#endif

#endif
