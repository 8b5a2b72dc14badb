/* The descriptor of Objective-C. Method names are -[Class selector], +[Class(Category) selector] or
 * -[Receiver:Owner selector]. */
#include "agent/runtimes/objc/objc.h"

#include "agent/abi/link.h"

#include <string.h>

static bool is_method(const char *name)
{
    return (name[0] == '-' || name[0] == '+') && name[1] == '[';
}

static bool split_method(const char *name, sj_method_parts *parts)
{
    const char *space = strchr(name, ' ');
    const size_t bytes = strlen(name);
    if (space == NULL || name[bytes - 1] != ']') {
        return false;
    }
    return sj_method_part_copy(parts->class, name + 2, strcspn(name + 2, ":( ")) &&
           sj_method_part_copy(parts->selector, space + 1,
                               (size_t)(name + bytes - 1 - (space + 1)));
}

static bool is_system_class(const char *name)
{
    return strncmp(name, "NS", 2) == 0 || strncmp(name, "GS", 2) == 0;
}

static const char *const files[] = {"libobjc.", NULL};

const sj_runtime sj_runtime_objc = {
    .name = "objc",
    .prefix = "objc",
    .files = files,
    .has_lineages = true,
    .patched_bit = SJ_LINK_RUNTIME_OBJC_REPLACED,
    .dispatch_bit = SJ_LINK_RUNTIME_OBJC_DISPATCH,
    .find_functions = sj_objc_find_functions,
    .find_classes = sj_objc_find_classes,
    .is_method = is_method,
    .split_method = split_method,
    .is_system_class = is_system_class,
    .read_live_class = sj_objc_read_live_class,
};
