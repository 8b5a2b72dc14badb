#include "agent/inproc/recorder/maps.h"

#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <sys/mman.h>

bool sj_maps_open(sj_maps *maps, char *buffer, uint32_t buffer_bytes)
{
    const long descriptor = sj_sys_open_at(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    *maps = (sj_maps){.descriptor = (int)descriptor, .capacity = buffer_bytes, .buffer = buffer};
    return descriptor >= 0;
}

void sj_maps_close(sj_maps *maps)
{
    (void)sj_sys_close(maps->descriptor);
}

/* Returns the next character, or -1 at the end. */
static int next_character(sj_maps *maps)
{
    if (maps->used == maps->filled) {
        const long count = sj_sys_read(maps->descriptor, maps->buffer, maps->capacity);
        if (count <= 0) {
            return -1;
        }
        maps->used = 0;
        maps->filled = (uint32_t)count;
    }
    return (unsigned char)maps->buffer[maps->used++];
}

/* Reads hexadecimal digits and the character that ends them. */
static bool read_address(sj_maps *maps, int end, uint64_t *value)
{
    *value = 0;
    for (;;) {
        const int c = next_character(maps);
        if (c == end) {
            return true;
        }
        if (c >= '0' && c <= '9') {
            *value = *value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            *value = *value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
}

static int read_protection(sj_maps *maps)
{
    int protection = 0;
    protection |= next_character(maps) == 'r' ? PROT_READ : 0;
    protection |= next_character(maps) == 'w' ? PROT_WRITE : 0;
    protection |= next_character(maps) == 'x' ? PROT_EXEC : 0;
    return protection;
}

/* Skips to the end of the line; true if the mapping's name begins with "[stack". */
static bool read_name_is_stack(sj_maps *maps)
{
    static const char name[] = "[stack";
    uint32_t matched = 0;
    for (int c = next_character(maps); c >= 0 && c != '\n'; c = next_character(maps)) {
        if (matched < sizeof(name) - 1) {
            matched = c == name[matched] ? matched + 1 : 0;
        }
    }
    return matched == sizeof(name) - 1;
}

bool sj_maps_next(sj_maps *maps, sj_mapping *mapping)
{
    if (!read_address(maps, '-', &mapping->low) || !read_address(maps, ' ', &mapping->high)) {
        return false;
    }
    mapping->protection = read_protection(maps);
    mapping->is_stack = read_name_is_stack(maps);
    return true;
}
