/* Reads classes of GCC's runtime and of libobjc2 in a running process. Both have the same first
 * members of a class. */
#include "agent/runtimes/objc/objc.h"

#include "agent/abi/page.h"

#include <string.h>
#include <sys/uio.h>

/* The first members of struct objc_class. */
typedef struct class_head {
    uint64_t meta;
    uint64_t super; /* Address of the superclass; of its name before the class is resolved. */
    uint64_t name;
    uint64_t version;
    uint64_t info;
} class_head;

/* Bits of `info` in GCC's runtime and in libobjc2. */
enum { IS_CLASS = 1, IS_META = 2, IS_RESOLVED = 8 };
enum { LIBOBJC2_IS_META = 1, LIBOBJC2_RESERVED = 0xfe, LIBOBJC2_IS_RESOLVED = 1 << 9 };

/* The meaning of `info`. */
typedef struct class_kind {
    bool is_class;
    bool is_meta;
    bool is_resolved;
} class_kind;

static size_t read_memory(pid_t pid, uint64_t address, void *bytes, size_t count)
{
    const struct iovec here = {.iov_base = bytes, .iov_len = count};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = count};
    const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '$' || byte == '.' || byte == '-';
}

/* Reads the name of a class. Reads page by page, because the next page may not be readable. Returns
 * false if it is not a class name. */
static bool read_name(pid_t pid, uint64_t address, char name[SJ_LIVE_CLASS_BYTES])
{
    size_t used = 0;
    while (used < SJ_LIVE_CLASS_BYTES) {
        const size_t in_piece =
            SJ_PAGE_LEAST_BYTES - (size_t)((address + used) % SJ_PAGE_LEAST_BYTES);
        const size_t left = SJ_LIVE_CLASS_BYTES - used;
        const size_t got =
            read_memory(pid, address + used, name + used, in_piece < left ? in_piece : left);
        if (got == 0) {
            return false;
        }
        for (const size_t end = used + got; used < end; used++) {
            if (name[used] == '\0') {
                return used > 0;
            }
            if (!is_name_byte(name[used])) {
                return false;
            }
        }
    }
    return false;
}

static bool read_head(pid_t pid, uint64_t address, class_head *head)
{
    return address != 0 && address % sizeof(uint64_t) == 0 &&
           read_memory(pid, address, head, sizeof(*head)) == sizeof(*head);
}

/* Returns what `info` says about a class. The bits of its metaclass show which runtime it belongs
 * to. */
static class_kind kind_of(const class_head *head, const class_head *meta)
{
    const uint64_t kinds = IS_CLASS | IS_META;
    if ((meta->info & (LIBOBJC2_IS_META | LIBOBJC2_RESERVED)) == LIBOBJC2_IS_META) {
        return (class_kind){.is_class = (head->info & LIBOBJC2_RESERVED) == 0,
                            .is_meta = (head->info & LIBOBJC2_IS_META) != 0,
                            .is_resolved = (head->info & LIBOBJC2_IS_RESOLVED) != 0};
    }
    return (class_kind){.is_class =
                            (meta->info & kinds) == IS_META &&
                            ((head->info & kinds) == IS_CLASS || (head->info & kinds) == IS_META),
                        .is_meta = (head->info & IS_META) != 0,
                        .is_resolved = (head->info & IS_RESOLVED) != 0};
}

bool sj_objc_read_live_class(pid_t pid, uint64_t address, sj_live_class *class)
{
    class_head head;
    class_head meta;
    class_head super;
    *class = (sj_live_class){0};
    if (!read_head(pid, address, &head) || !read_head(pid, head.meta, &meta)) {
        return false;
    }
    const class_kind kind = kind_of(&head, &meta);
    if (!kind.is_class || !read_name(pid, head.name, class->name)) {
        return false;
    }
    class->is_meta = kind.is_meta;
    const bool has_super = kind.is_resolved && read_head(pid, head.super, &super) &&
                           read_name(pid, super.name, class->super);
    if (!has_super) {
        class->super[0] = '\0';
    }
    return true;
}
