/* Design notes
 *
 * A method is left out by transforming its class without its probes. HotSpot then recompiles the
 * class's code. It never compiles the old version of a method that is still running, so a loop in
 * it is interpreted to its end. So methods that are called rarely enough keep their probes and are
 * muted. */
#include "agent/registry/left_out.h"
#include "proto/base/array.h"

#include <string.h>

/* Returns the index of a process's note about a left-out method; left_out_count: there is none. */
static size_t find_note(const sj_registry_class *class, uint64_t process, uint32_t method)
{
    size_t i = 0;
    while (i < class->left_out_count &&
           (class->left_out[i].process != process || class->left_out[i].method != method)) {
        i++;
    }
    return i;
}

bool sj_left_out_has(const sj_registry_class *class, uint64_t process, uint32_t method)
{
    const size_t place = class != NULL ? find_note(class, process, method) : 0;
    return class != NULL && place != class->left_out_count && !class->left_out[place].keeps_probe;
}

static uint32_t first_function(const sj_registry *registry, const sj_registry_class *class)
{
    return registry->modules[class->module - 1].first_function;
}

/* Returns the class to which a method's function belongs; NULL: none. */
static sj_registry_class *find_owner(const sj_registry *registry, uint32_t function)
{
    for (size_t i = 0; i < registry->class_count; i++) {
        sj_registry_class *class = &registry->classes[i];
        if (class->module != 0 && function - first_function(registry, class) < class->name_count) {
            return class;
        }
    }
    return NULL;
}

/* Returns the index of the note about a function's method, as find_note does. Returns 0 if `class`
 * is NULL. */
static size_t find_function_note(const sj_registry *registry, const sj_registry_class *class,
                                 uint64_t process, uint32_t function)
{
    return class != NULL ? find_note(class, process, function - first_function(registry, class))
                         : 0;
}

static bool leave_out(sj_registry *registry, uint64_t process, uint32_t function, bool is_out)
{
    sj_registry_class *class = find_owner(registry, function);
    if (class == NULL) {
        return false;
    }
    const uint32_t method = function - first_function(registry, class);
    const size_t place = find_function_note(registry, class, process, function);
    const bool is_noted = place != class->left_out_count;
    if (is_noted && !is_out && class->left_out[place].is_muted) {
        class->left_out[place].keeps_probe = true;
    } else if (is_noted && !is_out) {
        class->left_out[place] = class->left_out[--class->left_out_count];
    } else if (!is_noted && is_out &&
               sj_array_reserve(&class->left_out, &class->left_out_capacity, class->left_out_count,
                                /* out of memory: the method is recorded */
                                1, sizeof(*class->left_out)) == SJ_OK) {
        class->left_out[class->left_out_count++] =
            (sj_left_out){.process = process, .method = method};
    }
    return true;
}

size_t sj_registry_leave_out(sj_registry *registry, uint64_t process, uint32_t *functions,
                             size_t count, bool is_out)
{
    size_t other_count = 0;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < count; i++) {
        const uint32_t function = functions[i];
        if (!leave_out(registry, process, function, is_out)) {
            functions[i] = functions[other_count];
            functions[other_count++] = function;
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return other_count;
}

void sj_registry_leave_out_none(sj_registry *registry)
{
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < registry->class_count; i++) {
        sj_registry_class *class = &registry->classes[i];
        size_t kept = 0;
        for (size_t k = 0; k < class->left_out_count; k++) {
            if (class->left_out[k].is_muted) {
                class->left_out[kept] = class->left_out[k];
                class->left_out[kept++].keeps_probe = true;
            }
        }
        class->left_out_count = kept;
    }
    pthread_mutex_unlock(&registry->mutex);
}

/* True if the methods of a class that are left out may keep their probes. */
static bool may_keep(const sj_registry *registry, const sj_registry_class *class,
                     const sj_left_out_choice *choice)
{
    for (size_t i = 0; i < choice->count && !class->is_hidden; i++) {
        if (choice->methods[i] - first_function(registry, class) < class->name_count &&
            !choice->is_rare(choice->context, choice->methods[i])) {
            return false;
        }
    }
    return true;
}

/* Notes that a class's muted methods lose their probes, because the class is transformed again for
 * other methods. */
static void lose_probes(sj_registry_class *class, uint64_t process)
{
    for (size_t i = 0; i < class->left_out_count; i++) {
        if (class->left_out[i].process == process) {
            class->left_out[i].keeps_probe = false;
        }
    }
}

size_t sj_registry_mute(sj_registry *registry, const sj_left_out_choice *choice)
{
    size_t muted = 0;
    const sj_selection *selection = registry->options.selection;
    pthread_mutex_lock(&registry->mutex);
    /* A muted probe would still read its values. */
    const bool has_values = selection != NULL && selection->values != NULL;
    for (size_t i = 0; i < choice->count; i++) {
        const uint32_t function = choice->methods[i];
        sj_registry_class *class = find_owner(registry, function);
        const size_t place = find_function_note(registry, class, choice->process, function);
        if (class == NULL || place == class->left_out_count) {
            continue;
        }
        if ((has_values && !class->is_hidden) || !may_keep(registry, class, choice)) {
            lose_probes(class, choice->process);
            continue;
        }
        class->left_out[place].is_muted = true;
        class->left_out[place].keeps_probe = true;
        choice->methods[i] = choice->methods[muted];
        choice->methods[muted++] = function;
    }
    pthread_mutex_unlock(&registry->mutex);
    return muted;
}

/* Moves the muted methods to the front and returns how many there are. */
static size_t find_muted(sj_registry *registry, uint64_t process, uint32_t *methods, size_t count,
                         bool unmutes)
{
    size_t muted = 0;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < count; i++) {
        const uint32_t function = methods[i];
        sj_registry_class *class = find_owner(registry, function);
        const size_t place = find_function_note(registry, class, process, function);
        if (class != NULL && place != class->left_out_count && class->left_out[place].is_muted) {
            if (unmutes) {
                class->left_out[place] = class->left_out[--class->left_out_count];
            }
            methods[i] = methods[muted];
            methods[muted++] = function;
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return muted;
}

size_t sj_registry_find_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                              size_t count)
{
    return find_muted(registry, process, methods, count, false);
}

size_t sj_registry_unmute_found(sj_registry *registry, uint64_t process, uint32_t *methods,
                                size_t count)
{
    return find_muted(registry, process, methods, count, true);
}

size_t sj_registry_find_all_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                                  size_t capacity)
{
    size_t muted = 0;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < registry->class_count; i++) {
        const sj_registry_class *class = &registry->classes[i];
        for (size_t k = 0; k < class->left_out_count; k++) {
            const sj_left_out note = class->left_out[k];
            if (note.process == process && note.is_muted && muted < capacity) {
                methods[muted++] = first_function(registry, class) + note.method;
            }
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return muted;
}
